// The forward kernels of one instruction set, in reading order. Included inside the target's
// namespace after its vectors.
#include "shared/philox.h"

#include "cpu/block.inl"
#include "cpu/convert.inl"
#include "cpu/pack.inl"

#include "cpu/dropout.inl"
#include "cpu/softmax.inl"

#include "cpu/group.inl"
#include "cpu/tile.inl"

#include "cpu/peak.inl"

#include "cpu/item.inl"
