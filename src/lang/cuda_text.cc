#include "lang/cuda_text.h"

#include <algorithm>
#include <cstring>

#include "lang/cuda_text_writer.h"

namespace onepass::lang {
namespace {

constexpr std::array<const char*, level_count> struct_names = {"PerScope", "PerRow", "PerKey", ""};

const char* element_type(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return "double";
    case DType::float32:
      return "float";
    case DType::bfloat16:
      return "Bfloat16";
    case DType::float16:
      return "Float16";
    case DType::int64:
      return "int64";
    case DType::int32:
      return "int";
    default:
      return "unsigned char";
  }
}

}  // namespace

CudaTextWriter::CudaTextWriter(const Program& program, const CudaText& options)
    : program_(program), options_(options) {
  for (const Node& node : program_.nodes) {
    level_.push_back(level_of(node, [&](std::int32_t i) { return level(i); }));
  }
  needed_.resize(program_.nodes.size());
  if (program_.kind == Kind::mask) {
    members(Level::keys) = "  Int col;\n";
    split_conditions(program_.root);
  } else {
    conditions_.push_back(program_.root);
  }
  for (const std::int32_t condition : conditions_) needed_[index(condition)] = true;
  for (std::size_t i = program_.nodes.size(); i-- > 0;) {
    for (std::size_t j = 0; needed_[i] && j < program_.nodes[i].operands; ++j) {
      needed_[index(program_.nodes[i].operand[j])] = true;
    }
  }
}

std::string CudaTextWriter::text() {
  write_nodes();
  write_limits();
  const std::string value = value_function();  // may add members to the structs
  std::string out = "namespace " + options_.name + " {\n\nusing namespace onepass_text;\n";
  out += options_.int32 ? "using Int = int;\n" : "using Int = int64;\n";
  if (program_.kind == Kind::mask) {
    const bool has = !limits_.empty();
    const bool only = has && conditions_.empty();
    out += std::string("constexpr bool has_limits = ") + (has ? "true" : "false") + ";\n";
    out += std::string("constexpr bool only_limits = ") + (only ? "true" : "false") + ";\n";
  }
  out += parameters();
  out += struct_text(Level::scope) + struct_text(Level::row) + struct_text(Level::keys);
  out += function_text(Level::scope, "per_scope(const Parameters& p, const Scope& scope)");
  out += function_text(Level::row, "per_row(const Parameters& p, const PerScope& c, Int row)");
  out += function_text(Level::keys, "per_key(const Parameters& p, const PerScope& c, Int col)");
  return out + value + "\n}  // namespace " + options_.name + "\n";
}

std::string CudaTextWriter::parameters() const {
  std::string out = "\nstruct Parameters {\n";
  const std::string count = std::to_string(program_.parameters.size());
  if (!program_.parameters.empty()) {
    out += "  int64 integers[" + count + "];\n";
    out += "  float reals[2 * " + count + "];\n";
  }
  const std::string rank = "[" + std::to_string(max_rank) + "]";
  for (std::size_t i = 0; i < program_.arrays.size(); ++i) {
    const std::string id = std::to_string(i);
    out += std::string("  const ") + element_type(program_.arrays[i].view.dtype) + "* array_" + id +
           ";\n  int64 shape_" + id + rank + ", strides_" + id + rank + ";\n";
  }
  if (program_.parameters.empty() && program_.arrays.empty()) out += "  int64 none;\n";
  return out + "};\n";
}

std::string CudaTextWriter::struct_text(Level level) const {
  const auto at = static_cast<std::size_t>(level);
  return std::string("\nstruct ") + struct_names[at] + " {\n" + members_[at] + "};\n";
}

std::string CudaTextWriter::function_text(Level level, const std::string& signature) const {
  const auto at = static_cast<std::size_t>(level);
  const std::string name = struct_names[at];
  std::string out = "\n__forceinline__ " + name + " " + signature + " {\n" + body_[at];
  out += "  " + name + " out;\n";
  const std::string& lines = members_[at];
  for (std::size_t begin = 0; begin < lines.size(); begin = lines.find('\n', begin) + 1) {
    const std::size_t end = lines.find(';', begin);
    const std::size_t word = lines.rfind(' ', end) + 1;
    const std::string member = lines.substr(word, end - word);
    out += "  out." + member + " = " + member + ";\n";
  }
  return out + "  return out;\n}\n";
}

std::string CudaTextWriter::value_function() {
  std::string out = std::string("\n__forceinline__ ") + type_of(program_.top()) +
                    " value(const Parameters& p, const PerScope& c, const PerRow& r, "
                    "const PerKey& k" +
                    (program_.kind == Kind::score ? ", float s" : "") + ") {\n";
  const std::string result = conjunction();
  return out + body(Level::pair) + "  return " + result + ";\n}\n";
}

std::string cuda_text(const Program& program, const CudaText& options) {
  return CudaTextWriter(program, options).text();
}

void add_cuda_text_key(const Program& program, std::string& key) {
  const auto add = [&](auto value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  add(program.kind), add(program.root);
  add(static_cast<std::int32_t>(program.nodes.size()));
  add(static_cast<std::int32_t>(program.parameters.size()));
  add(static_cast<std::int32_t>(program.arrays.size()));
  for (const Node& node : program.nodes) {
    add(node.op), add(node.type), add(node.varies), add(node.operands), add(node.name);
    add(node.slot);
    for (std::size_t i = 0; i < node.operands; ++i) add(node.operand[i]);
    if (node.op == Op::constant) add(node.integer), add(node.real);
  }
  for (const Array& array : program.arrays) {
    const TensorView& view = array.view;
    add(view.dtype), add(view.rank);
    for (std::size_t dim = 0; dim < static_cast<std::size_t>(view.rank); ++dim) {
      const std::int64_t size = std::min<std::int64_t>(view.shape[dim], 2);
      add(static_cast<char>(2 * size + (view.strides[dim] == 1 ? 1 : 0)));
    }
  }
}

std::size_t cuda_text_parameter_bytes(const Program& program) {
  constexpr std::size_t number_bytes = sizeof(std::int64_t) + 2 * sizeof(float);
  constexpr std::size_t array_bytes = sizeof(void*) + 2 * max_rank * sizeof(std::int64_t);
  const std::size_t bytes =
      number_bytes * program.parameters.size() + array_bytes * program.arrays.size();
  return bytes == 0 ? sizeof(std::int64_t) : bytes;
}

std::vector<std::byte> cuda_text_parameters(const Program& program) {
  std::vector<std::byte> out;
  out.reserve(cuda_text_parameter_bytes(program));
  const auto append = [&](const auto& value) {
    const std::size_t end = out.size();
    out.resize(end + sizeof value);
    std::memcpy(out.data() + end, &value, sizeof value);
  };
  for (const Parameter& parameter : program.parameters) append(parameter.integer);
  for (const Parameter& parameter : program.parameters) append(static_cast<float>(parameter.real));
  for (std::size_t i = 0; i < program.parameters.size(); ++i) append(0.0f);
  for (const Array& array : program.arrays) {
    append(array.view.data);
    append(array.view.shape);
    append(array.view.strides);
  }
  if (out.empty()) append(std::int64_t{0});
  return out;
}

}  // namespace onepass::lang
