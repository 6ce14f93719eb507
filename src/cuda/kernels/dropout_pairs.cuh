// dropout_words of shared/philox.h for whoever has many pairs of a row or of a column: until its
// third round a counter's words depend on the row alone or on the column alone, but for one
// product. 15 of Philox' 20 products are left to four pairs.
#pragma once
#include "cuda/kernels/call_parts.cuh"

namespace {

struct PhiloxProduct {
  unsigned low, high;
};
// What a round makes of words 0 and 2 of its counter.
__device__ PhiloxProduct product0(unsigned c0) {
  return {0xD2511F53u * c0, __umulhi(0xD2511F53u, c0)};
}
__device__ PhiloxProduct product1(unsigned c2) {
  return {0xCD9E8D57u * c2, __umulhi(0xCD9E8D57u, c2)};
}
__device__ unsigned key0(const DropoutStream& stream, int round) {
  return stream.seed_low + round * 0x9E3779B9u;
}
__device__ unsigned key1(const DropoutStream& stream, int round) {
  return stream.seed_high + round * 0xBB67AE85u;
}

// Words 0 and 2 to 3 of the counter after round 2, where they are the row's, the first without the
// pair's product; and what round 1 left for the pair's word 2.
struct DropoutRow {
  unsigned word0, word2, word3, before;
};
__device__ DropoutRow dropout_row(const DropoutStream& stream, int64 row) {
  const PhiloxProduct first = product0(unsigned(row) & ~8u);
  const PhiloxProduct second = product1(first.high ^ stream.place_high ^ key1(stream, 0));
  const PhiloxProduct third =
      product0(second.high ^ product1(stream.place_low).low ^ key0(stream, 1));
  return {second.low ^ key0(stream, 2), third.high ^ key1(stream, 2), third.low,
          first.low ^ key1(stream, 1)};
}

struct DropoutCol {
  PhiloxProduct product;  // of round 1
};
__device__ DropoutCol dropout_col(const DropoutStream& stream, int64 col) {
  return {product0(product1(stream.place_low).high ^ (unsigned(col) & ~8u) ^ key0(stream, 0))};
}

__device__ PhiloxWords dropout_words(const DropoutStream& stream, const DropoutRow& row,
                                     const DropoutCol& col) {
  const PhiloxProduct both = product1(col.product.high ^ row.before);
  unsigned c0 = both.high ^ row.word0, c1 = both.low, c2 = row.word2 ^ col.product.low,
           c3 = row.word3;
#pragma unroll
  for (int round = 3; round < 10; ++round) {
    const PhiloxProduct of_c0 = product0(c0), of_c2 = product1(c2);
    c0 = of_c2.high ^ c1 ^ key0(stream, round), c1 = of_c2.low;
    c2 = of_c0.high ^ c3 ^ key1(stream, round), c3 = of_c0.low;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace
