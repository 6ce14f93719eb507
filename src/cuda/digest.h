// A 128-bit FNV-1a digest (Fowler, Noll, Vo; RFC 9923): names cache files and shows damage in them.
//
// FNV because it is ten lines with published test values, and strength is not asked of it: a cache
// file holds its whole key, which is compared, and nobody else may write into the folder.
#pragma once

#include <string>
#include <string_view>

namespace onepass::cuda {

/// 32 lower-case hexadecimal digits.
std::string digest(std::string_view bytes);

}  // namespace onepass::cuda
