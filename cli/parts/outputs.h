// The files that a verb writes: refused before work where they cannot be, then all of them whole or
// none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace onepass::cli {

/// Everything is written beside its place first and renamed at the end. Devices and pipes such as
/// /dev/stdout cannot be renamed over: they get their bytes last, before the renames. Each function
/// throws Error with a message that begins with the argument.
class Outputs {
 public:
  Outputs() = default;
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  ~Outputs();

  /// A file that the verb reads, so that no output may be the same.
  void reads(const std::string& argument, const std::string& path);
  /// Checks that `path` can be written, and that it is no input and no other output.
  void claim(const std::string& argument, const std::string& path);
  /// The whole content of a path that was claimed.
  void put(const std::string& path, std::string_view bytes);
  /// Puts everything in place.
  void commit();

 private:
  struct Input {
    std::string argument, path;
  };
  struct Target {
    std::string argument, path;
    std::string place;  // path with its links followed; empty = written directly
    std::string part;   // the file beside it, once there is one
    std::string bytes;  // of a target that is written directly
  };
  std::vector<Input> inputs_;
  std::vector<Target> targets_;
};

/// Makes a folder where there is none.
void make_folder(const std::string& argument, const std::string& path);

}  // namespace onepass::cli
