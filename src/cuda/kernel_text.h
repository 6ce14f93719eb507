// The kernels' source text, which the build puts into the library.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace onepass::cuda {

struct TextFile {
  std::string_view name, text;
};

/// Every file of src/cuda/kernels and src/shared by its name under src/. The build writes it.
std::span<const TextFile> text_files();

/// The file `name`, as "cuda/kernels/dropout_mask.cuh", with each file that it includes in the
/// place of its first `#include "..."`: a source that includes nothing.
std::string kernel_text(std::string_view name);

}  // namespace onepass::cuda
