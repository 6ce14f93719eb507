#include "cuda/machine_code.h"

#include "cuda/pack.h"

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
  const Result<Pack>& pack = given_pack();
  if (!pack.ok()) return pack.status();
  if (const Compiled* packed = pack.value().find(source, architecture)) return *packed;
  const Result<Nvrtc>& compiler = nvrtc();
  if (!compiler.ok()) {
    Status status = compiler.status();
    if (pack.value().size() > 0) {
      status.message += "; of its " + std::to_string(pack.value().size()) +
                        " kernels ONEPASS_PACK has none for this call on " + architecture;
    }
    return status;
  }
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
