// The forward kernels of one instruction set, in reading order. Included inside the target's
// namespace after its vectors.
#include "cpu/block.inl"
#include "cpu/convert.inl"
#include "cpu/pack.inl"
#include "shared/philox.h"

#include "cpu/dropout.inl"
#include "cpu/peak.inl"
#include "cpu/softmax.inl"
#include "cpu/tile.inl"

#include "cpu/isolate.inl"
#include "cpu/item.inl"
