// How a tile's numbers lie in the registers of a warp: as the accumulators of mma and wgmma, whose
// lane 4 g + t has columns 2t and 2t + 1 of every 8, of rows g and g + 8 of every 16.
#pragma once
#include "cuda/kernels/forward_call.cuh"
#include "cuda/kernels/mma.cuh"

namespace {

constexpr int threads = 32 * config::warps;
constexpr int padded_d = (config::d + 15) / 16 * 16, padded_d_v = (config::d_v + 15) / 16 * 16;
constexpr int row_blocks = config::tile_rows / (16 * config::warps);  // of 16 rows, of a warp
constexpr int key_blocks = config::tile_keys / 8, column_blocks = padded_d_v / 8;

// Of a lane, rows g and g + 8 of each block of 16: logits and weights (rows, keys), sums (rows,
// d_v).
using Logits = float[row_blocks][key_blocks][4];
using Sums = float[row_blocks][column_blocks][4];
using RowNumbers = float[row_blocks][2];

}  // namespace
