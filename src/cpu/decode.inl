// The decode kernels of one instruction set, in reading order; after forward.inl.
#include "cpu/decode_block.inl"

#include "cpu/decode_chunk.inl"

#include "cpu/decode_merge.inl"
