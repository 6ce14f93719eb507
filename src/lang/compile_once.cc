#include "lang/compile_once.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace onepass::lang {
namespace {

constexpr std::size_t most_kept = 256;

template <class T>
void add(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void add_text(std::string& key, std::string_view text) {
  add(key, text.size());
  key += text;
}

void add_value(std::string& key, const TensorView& view) {
  add(key, view.dtype), add(key, view.rank);
  for (int i = 0; i < std::clamp(view.rank, 0, max_rank); ++i) {
    add(key, view.shape[static_cast<std::size_t>(i)]);
    add(key, view.strides[static_cast<std::size_t>(i)]);
  }
}

template <class T>
void add_value(std::string& key, const T& value) {
  static_assert(std::is_arithmetic_v<T>);
  add(key, value);
}

std::string key_of(std::string_view text, Kind kind, std::span<const Argument> arguments,
                   std::string_view definitions) {
  std::string key;
  key.reserve(256);
  add(key, kind), add_text(key, text), add_text(key, definitions);
  for (const Argument& argument : arguments) {
    add_text(key, argument.name);
    add(key, argument.value.index());
    std::visit([&](const auto& value) { add_value(key, value); }, argument.value);
  }
  return key;
}

struct Kept {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Program>> programs;

  std::shared_ptr<const Program> find(const std::string& key) {
    const std::lock_guard lock(mutex);
    const auto found = programs.find(key);
    return found == programs.end() ? nullptr : found->second;
  }
  void keep(std::string key, const Program& program) {
    auto copy = std::make_shared<const Program>(program);
    const std::lock_guard lock(mutex);
    // Calls whose numbers change each time would fill it without end.
    if (programs.size() >= most_kept) programs.clear();
    programs.insert_or_assign(std::move(key), std::move(copy));
  }
};

Kept& kept() {
  static Kept all;
  return all;
}

}  // namespace

void point_to(std::span<const Argument> arguments, Program& program) {
  for (Array& array : program.arrays) {
    for (const Argument& argument : arguments) {
      if (argument.name == array.name) array.view = std::get<TensorView>(argument.value);
    }
  }
}

Result<Program> compile_once(std::string_view text, Kind kind, std::span<const Argument> arguments,
                             std::string_view definitions) {
  std::string key = key_of(text, kind, arguments, definitions);
  if (const std::shared_ptr<const Program> known = kept().find(key)) {
    Program program = *known;
    point_to(arguments, program);
    return program;
  }
  Result<Program> program = compile(text, kind, arguments, definitions);
  if (program.ok()) kept().keep(std::move(key), program.value());
  return program;
}

}  // namespace onepass::lang
