// The NPY reader on any bytes: an array whose every element can be read, or a message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/parts/convert.h"
#include "cli/parts/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace onepass;
  const Result<cli::Array> array = cli::parse_npy({reinterpret_cast<const char*>(data), size});
  if (!array.ok()) {
    if (array.status().message.empty()) std::abort();
    return 0;
  }
  const TensorView& view = array.value().view;
  const cli::Array copy = cli::converted(view, view.dtype);
  if (copy.view.elements() != view.elements()) std::abort();
  return 0;
}
