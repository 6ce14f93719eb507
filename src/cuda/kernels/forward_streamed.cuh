// q k^T where rows of q and k are wide: keys come in pieces of 64 columns through a ring in shared
// memory, while those before are multiplied.
#pragma once
#include "cuda/kernels/forward_products.cuh"

namespace {

using KeyPiece = SharedTile<config::tile_keys, piece_width, element_bytes>;
constexpr int ring_pieces = is_streamed ? config::ring : 1, pieces_ahead = ring_pieces - 1;
static_assert(!is_streamed || ring_pieces >= 2);
constexpr int keys_bytes = is_streamed ? ring_pieces * KeyPiece::bytes : KeyTile::bytes;

// One piece of keys [from, from + tile_keys) into its place in the ring.
__device__ void load_key_piece(unsigned sK, const config::Element* k, int64 stride, int from,
                               int s_kv, int piece) {
  constexpr int last_width = config::d - (key_pieces - 1) * piece_width;
  const unsigned to = sK + piece % ring_pieces * KeyPiece::bytes;
  if (last_width == piece_width || piece < key_pieces - 1) {
    load_tile<KeyPiece, piece_width>(to, k + piece * piece_width, stride, from, s_kv);
  } else {
    load_tile<KeyPiece, last_width>(to, k + piece * piece_width, stride, from, s_kv);
  }
}

__device__ void load_first_pieces(unsigned sK, const config::Element* k, int64 stride, int from,
                                  int s_kv) {
#pragma unroll 1
  for (int piece = 0; piece < pieces_ahead; ++piece) {
    load_key_piece(sK, k, stride, from, s_kv, piece);
  }
}

// rS (warp's rows, keys) = sQ (warp's rows, d) sK (keys, d)^T. The first pieces are there.
__device__ void multiply_streamed_keys(Logits& rS, const Reader<QueryTile>& sQ, unsigned sK,
                                       const config::Element* k, int64 stride, int from, int s_kv,
                                       int lane) {
#pragma unroll
  for (int i = 0; i < 4 * row_blocks * key_blocks; ++i) {
    rS[i / (4 * key_blocks)][i / 4 % key_blocks][i % 4] = 0.0f;
  }
#pragma unroll 1
  for (int piece = 0; piece < key_pieces; ++piece) {
    if (piece > 0) {
      wait_copies<(pieces_ahead > 1 ? pieces_ahead - 1 : 0)>();
      __syncthreads();
    }
    if (piece + pieces_ahead < key_pieces) {
      load_key_piece(sK, k, stride, from, s_kv, piece + pieces_ahead);
    }
    commit_copies();  // one for each piece, so that waiting can count them
    const auto keys = halves_first<KeyPiece>(sK + piece % ring_pieces * KeyPiece::bytes, lane);
    auto queries = sQ;
    queries.first += piece * piece_width * element_bytes;
    add_product<piece_width / 16, piece_width / 16>(config::Element{}, rS, queries, keys);
  }
}

}  // namespace
