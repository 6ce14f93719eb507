#include "cuda/cache_entry.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "cuda/digest.h"

namespace onepass::cuda {
namespace {

constexpr std::string_view magic = "onepass kernel 1";

struct Header {
  std::array<char, 16> magic;
  std::uint64_t key_bytes, cubin_bytes, log_bytes;
  std::array<char, 32> digest;  // of all that follows
};
static_assert(sizeof(Header) == 72);

}  // namespace

std::string to_entry(const std::string& key, const Compiled& compiled) {
  const std::string rest = key + compiled.cubin + compiled.log;
  const std::string rest_digest = digest(rest);
  Header header{{}, key.size(), compiled.cubin.size(), compiled.log.size(), {}};
  std::memcpy(header.magic.data(), magic.data(), magic.size());
  std::memcpy(header.digest.data(), rest_digest.data(), rest_digest.size());
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + rest;
}

std::optional<CacheEntry> from_entry(std::string_view bytes) {
  Header header{};
  if (bytes.size() < sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  // Sizes one by one, so that no sum of them can wrap.
  std::size_t left = bytes.size();
  for (const std::uint64_t size : {header.key_bytes, header.cubin_bytes, header.log_bytes}) {
    if (size > left) return {};
    left -= static_cast<std::size_t>(size);
  }
  if (left != 0 || std::string_view(header.magic.data(), magic.size()) != magic ||
      std::string_view(header.digest.data(), header.digest.size()) != digest(bytes)) {
    return {};
  }
  const auto take = [&](std::uint64_t size) {
    const std::string_view part = bytes.substr(0, static_cast<std::size_t>(size));
    bytes.remove_prefix(part.size());
    return std::string(part);
  };
  CacheEntry entry;
  entry.key = take(header.key_bytes);
  entry.compiled.cubin = take(header.cubin_bytes);
  entry.compiled.log = take(header.log_bytes);
  return entry;
}

}  // namespace onepass::cuda
