// The sums of an array's gradient before and after backward_arrays.
//
// backward_clear_sums:  zeros for every chain.
// backward_finish_sums: the chains' copies, added up in order, into the gradient.
namespace {

using int64 = long long;

constexpr int threads = 256;

struct SumsCall {
  void* sums;
  int64 bytes;             // of all, a multiple of 4
  int64 elements, chains;  // doubles of each of so many copies
  float* gradient;
  int64 shape[4], strides[4];
};

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    backward_clear_sums(const __grid_constant__ SumsCall call) {
  for (int64 i = int64(blockIdx.x) * threads + threadIdx.x; i < call.bytes / 4;
       i += int64(gridDim.x) * threads) {
    ((int*)call.sums)[i] = 0;
  }
}

extern "C" __global__ void __launch_bounds__(threads)
    backward_finish_sums(const __grid_constant__ SumsCall call) {
  for (int64 i = int64(blockIdx.x) * threads + threadIdx.x; i < call.elements;
       i += int64(gridDim.x) * threads) {
    double sum = 0.0;
    for (int64 chain = 0; chain < call.chains; ++chain) {
      sum += ((const double*)call.sums)[chain * call.elements + i];
    }
    int64 rest = i, at = 0;
    for (int dim = 3; dim >= 0; --dim) {
      at += rest % call.shape[dim] * call.strides[dim];
      rest /= call.shape[dim];
    }
    call.gradient[at] = float(sum);
  }
}
