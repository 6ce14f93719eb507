// How failures travel: Status inside the library, Error at the C++ edge.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace onepass {

enum class Code {
  ok,
  invalid_argument,  // a value, shape, stride or expression is wrong
  type_error,        // a dtype or kind of argument is wrong
  not_supported,     // legal, but no kernel takes it; the message names each kernel and its reason
  not_prepared,      // a launch whose plan was never prepared
  runtime_error,     // the device or the system failed
};

/// Outcome of a step. Messages have the form
/// `argument: what was found; what is allowed; what to try`.
struct [[nodiscard]] Status {
  Code code = Code::ok;
  std::string message;
  bool ok() const { return code == Code::ok; }
  static Status invalid(std::string message) {
    return {Code::invalid_argument, std::move(message)};
  }
  static Status type_error(std::string message) { return {Code::type_error, std::move(message)}; }
};

/// A value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Status status) : held_(std::move(status)) {}
  bool ok() const { return std::holds_alternative<T>(held_); }
  T& value() { return std::get<T>(held_); }
  const T& value() const { return std::get<T>(held_); }
  Status status() const { return ok() ? Status{} : std::get<Status>(held_); }

 private:
  std::variant<T, Status> held_;
};

/// Thrown by the public C++ functions.
class Error : public std::runtime_error {
 public:
  explicit Error(const Status& status) : std::runtime_error(status.message), code(status.code) {}
  Code code;
};

}  // namespace onepass
