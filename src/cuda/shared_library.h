// A library found at run time and the functions looked up in it.
#pragma once

#include <string>
#include <string_view>

namespace onepass::cuda {

/// Opened by name or path; never closed, for what is compiled or loaded with it outlives any owner.
class SharedLibrary {
 public:
  explicit SharedLibrary(const std::string& name);
  bool opened() const { return handle_ != nullptr; }
  /// The loader's words on why it did not open.
  const std::string& error() const { return error_; }
  /// Sets `function` to the named one, or to null and notes the name as missing.
  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(symbol(name));
  }
  /// The first function that was not there; empty = all were.
  const std::string& missing() const { return missing_; }

 private:
  void* symbol(const char* name);

  void* handle_ = nullptr;
  std::string error_, missing_;
};

/// The file that the code or data at `address` was loaded from, links resolved; empty if unknown.
std::string file_of(const void* address);

}  // namespace onepass::cuda
