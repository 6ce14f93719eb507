// Dropout's random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011), and the contract that gives each (query, key) pair its word.
//
// Compiled by the C++ compiler and by NVRTC. It includes nothing and names no namespace: include it
// in the one of the kernels that use it, so that no copy is shared between instruction sets. Its
// functions are constexpr, which nvcc takes for both sides (--expt-relaxed-constexpr).
#pragma once

struct PhiloxWords {
  unsigned word[4];
};

/// Ten rounds over one counter.
constexpr PhiloxWords philox(unsigned c0, unsigned c1, unsigned c2, unsigned c3, unsigned key0,
                             unsigned key1) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long product0 = 0xD2511F53ULL * c0, product1 = 0xCD9E8D57ULL * c2;
    c0 = (unsigned)(product1 >> 32) ^ c1 ^ key0;
    c1 = (unsigned)product1;
    c2 = (unsigned)(product0 >> 32) ^ c3 ^ key1;
    c3 = (unsigned)product0;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

/// The stream of one (sequence, query head): words 2 and 3 of its counters and the key.
struct DropoutStream {
  unsigned place_low, place_high, seed_low, seed_high;
};
constexpr DropoutStream dropout_stream(unsigned long long seed, unsigned long long offset,
                                       long long b, long long h) {
  const unsigned long long place = (unsigned long long)h + ((unsigned long long)b << 32) + offset;
  return {(unsigned)place, (unsigned)(place >> 32), (unsigned)seed, (unsigned)(seed >> 32)};
}

/// The four words shared by rows row, row + 8 and cols col, col + 8 (bit 3 clear in both): pair
/// (r, c) takes word 2 * bit3(r) + bit3(c) and is kept if that word >= p * 2^32.
constexpr PhiloxWords dropout_words(const DropoutStream& stream, long long row, long long col) {
  return philox((unsigned)row & ~8U, (unsigned)col & ~8U, stream.place_low, stream.place_high,
                stream.seed_low, stream.seed_high);
}

/// p * 2^32 rounded up: kept means word >= this.
constexpr unsigned long long dropout_threshold(double p) {
  const double exact = p * 4294967296.0;
  const unsigned long long whole = (unsigned long long)exact;
  return whole + ((double)whole < exact);
}
