#include "cuda/machine_code.h"

namespace onepass::cuda {
namespace {

std::string cache_key(const Nvrtc& nvrtc, const std::string& source,
                      const std::string& architecture) {
  std::string key = nvrtc.identity + "\n";
  for (const std::string& option : compile_options(nvrtc, architecture)) key += option + "\n";
  return key + source;
}

}  // namespace

Result<Compiled> machine_code(const std::string& source, const std::string& architecture) {
  const Result<Nvrtc>& compiler = nvrtc();
  if (!compiler.ok()) return compiler.status();
  return compile_cached(DiskCache(cache_folder()), compiler.value(), source, architecture);
}

Result<Compiled> compile_cached(const DiskCache& cache, const Nvrtc& nvrtc,
                                const std::string& source, const std::string& architecture) {
  const std::string key = cache_key(nvrtc, source, architecture);
  if (std::optional<Compiled> kept = cache.read(key)) return std::move(*kept);
  Result<Compiled> compiled = compile(nvrtc, source, architecture);
  if (compiled.ok()) cache.write(key, compiled.value());
  return compiled;
}

}  // namespace onepass::cuda
