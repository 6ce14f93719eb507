// Writes the text of one program; see cuda_text.h for what it looks like.
//
// Each node becomes a constant in the function of its level (per_scope, per_row, per_key, value).
// What code of a faster level reads becomes a member of that level's struct.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lang/cuda_text.h"
#include "lang/level.h"

namespace onepass::lang {

class CudaTextWriter {
 public:
  CudaTextWriter(const Program& program, const CudaText& options);
  std::string text();

 private:
  // A condition `coefficient * col + terms < 0`, or <= 0. The coefficient is 1 or -1; a term is an
  // integer node, added or subtracted (of a name of the key side: where it starts).
  struct Limit {
    struct Term {
      std::int32_t node;
      bool added;
    };
    int coefficient = 0;
    std::vector<Term> terms;
    bool or_equal = false;
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  const Node& node(std::int32_t i) const { return program_.nodes[index(i)]; }
  const Node& operand(const Node& at, std::size_t i) const { return node(at.operand[i]); }
  Level level(std::int32_t i) const { return level_[index(i)]; }
  bool varies_with_key(std::int32_t i) const { return (static_cast<int>(level(i)) & 2) != 0; }
  std::string& body(Level level) { return body_[static_cast<std::size_t>(level)]; }
  std::string& members(Level level) { return members_[static_cast<std::size_t>(level)]; }

  // cuda_text_limits.cc
  void split_conditions(std::int32_t i);
  bool find_limit(const Node& at, Limit& limit) const;
  bool add_terms(std::int32_t i, bool added, Limit& limit) const;
  void write_limits();
  std::string conjunction();

  // cuda_text_nodes.cc
  std::string value_of(std::int32_t i, Level from);
  std::string variable(const std::string& name, const std::string& type, Level level, Level from);
  std::string start(Name name, Level from);
  const char* type_of(const Node& at) const;
  void define(Level level, const std::string& type, const std::string& name,
              const std::string& expression);
  void write_nodes();
  std::string name_of(const Node& at, Level level);
  std::string real_operation(const char* op, const char* rounded, const std::string& a,
                             const std::string& b) const;
  std::string divide(const Node& at, Level level, const std::string& a, const std::string& b);
  std::string integer_division(const Node& at, const std::string& a, const std::string& b) const;
  std::string expression_of(std::int32_t i, Level level);
  std::string load(std::int32_t i, Level level);

  // cuda_text.cc
  std::string parameters() const;
  std::string struct_text(Level level) const;
  std::string function_text(Level level, const std::string& signature) const;
  std::string value_function();

  const Program& program_;
  CudaText options_;
  std::vector<Level> level_;
  std::vector<bool> needed_;
  std::vector<Limit> limits_;
  std::vector<std::int32_t> conditions_;          // of a mask: what must hold besides the limits
  std::array<std::string, level_count> members_;  // of PerScope, PerRow, PerKey
  std::array<std::string, level_count> body_;     // code of each level
};

}  // namespace onepass::lang
