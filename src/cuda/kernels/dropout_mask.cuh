// The pairs that dropout keeps: mask[b, h, i, j] = word of pair (row0 + i, col0 + j) >= threshold.
//
// Grid: any number of blocks of any size. A thread takes rows i, i + 8 and cols j, j + 8 of a 16 x
// 16 piece of the mask, the four pairs that share one Philox counter, then strides on over the
// pieces.
#include "shared/philox.h"

struct DropoutMaskCall {
  unsigned char* mask;
  long long b, h, rows, cols;                              // shape of the mask
  long long stride_b, stride_h, stride_rows, stride_cols;  // in elements, any sign
  unsigned long long seed, offset, threshold;
  long long row0, col0;  // multiples of 16
};

extern "C" __global__ void dropout_mask(const DropoutMaskCall call) {
  const long long row_pieces = (call.rows + 15) / 16, col_pieces = (call.cols + 15) / 16;
  const long long groups = call.b * call.h * row_pieces * col_pieces * 64;
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < groups; at += step) {
    // at = (((b, h), row piece), col piece), 8 rows, 8 cols
    long long rest = at / 64;
    const long long j = rest % col_pieces * 16 + at % 8;
    rest /= col_pieces;
    const long long i = rest % row_pieces * 16 + at / 8 % 8;
    rest /= row_pieces;
    const long long h = rest % call.h, b = rest / call.h;
    const DropoutStream stream = dropout_stream(call.seed, call.offset, b, h);
    const PhiloxWords words = dropout_words(stream, call.row0 + i, call.col0 + j);
    unsigned char* const to = call.mask + b * call.stride_b + h * call.stride_h;
    for (int word = 0; word < 4; ++word) {
      const long long row = i + word / 2 * 8, col = j + word % 2 * 8;
      if (row >= call.rows || col >= call.cols) continue;
      to[row * call.stride_rows + col * call.stride_cols] = words.word[word] >= call.threshold;
    }
  }
}
