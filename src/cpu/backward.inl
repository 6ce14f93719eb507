// The backward kernels of one instruction set, in reading order. Included inside the target's
// namespace after forward.inl, whose blocks, rows and dropout they share.
#include "cpu/columns.inl"
#include "cpu/product.inl"

#include "cpu/gradient_arrays.inl"

#include "cpu/gradient_sums.inl"

#include "cpu/gradient_step.inl"
#include "cpu/gradient_tile.inl"

#include "cpu/gradient_normaliser.inl"

#include "cpu/gradient_rows.inl"

#include "cpu/gradient_item.inl"
