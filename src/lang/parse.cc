#include "lang/parse.h"

#include <algorithm>

namespace onepass::lang {
namespace {

using Kind = Token::Kind;

// Binding strength of a binary operator, loosest first; 0 = none. `?:` is looser than all of them.
int strength(Kind kind) {
  switch (kind) {
    case Kind::bar:
      return 1;
    case Kind::ampersand:
      return 2;
    case Kind::less:
    case Kind::less_equal:
    case Kind::greater:
    case Kind::greater_equal:
    case Kind::equal:
    case Kind::not_equal:
      return 3;
    case Kind::plus:
    case Kind::minus:
      return 4;
    case Kind::star:
    case Kind::slash:
    case Kind::slash_slash:
    case Kind::percent:
      return 5;
    default:
      return 0;
  }
}
constexpr int comparison_strength = 3;

// The first error wins; after it every function returns -1 at once.
class Parser {
 public:
  Parser(const Source& source, bool separators) : source_(source), lexer_(source.text, separators) {
    advance();
  }

  Result<Tree> whole_expression() {
    Tree tree = expression_tree();
    if (!failed() && token_.kind != Kind::end) unexpected("an operator or the end");
    if (failed()) return *error_;
    return tree;
  }

  Result<std::vector<ParsedDefinition>> definitions() {
    std::vector<ParsedDefinition> out;
    while (!failed()) {
      while (token_.kind == Kind::separator) advance();
      if (token_.kind == Kind::end || failed()) break;
      out.push_back(definition());
    }
    if (failed()) return *error_;
    return out;
  }

 private:
  bool failed() const { return error_.has_value(); }

  std::int32_t fail(std::size_t offset, const std::string& message) {
    if (!failed()) error_ = Status::invalid(source_.place(offset) + ": " + message);
    return -1;
  }

  std::int32_t unexpected(const std::string& expected) {
    if (token_.kind == Kind::assign) {
      return fail(token_.offset, "\"=\" is not an operator here; equality is written ==");
    }
    if (token_.text == "and") return fail(token_.offset, "\"and\" is written & here");
    if (token_.text == "or") return fail(token_.offset, "\"or\" is written | here");
    if (before_.text == "not") return fail(before_.offset, "\"not\" is written ! here");
    const bool ended = token_.kind == Kind::end || token_.kind == Kind::separator;
    const std::string found = ended ? "the text ends here" : "found " + quoted(token_.text);
    return fail(token_.offset, found + "; expected " + expected);
  }

  void advance() {
    if (failed()) return;
    before_ = std::move(token_);
    token_ = lexer_.next();
    if (token_.kind == Kind::invalid) fail(token_.offset, token_.problem);
  }

  bool expect(Kind kind, const std::string& expected) {
    if (failed()) return false;
    if (token_.kind != kind) {
      unexpected(expected);
      return false;
    }
    advance();
    return !failed();
  }

  Tree expression_tree() {
    tree_ = {};
    const std::int32_t root = expression();
    tree_.root = root;
    return std::move(tree_);
  }

  ParsedDefinition definition() {
    ParsedDefinition out;
    const std::size_t begin = token_.offset;
    out.offset = begin;
    out.name = token_.text;
    if (!expect(Kind::word, "the name of a definition, as in name(a, b) = expression")) return out;
    if (token_.kind == Kind::left_paren) {
      advance();
      do {
        if (token_.kind == Kind::comma) advance();
        out.parameters.push_back(token_.text);
        const std::size_t offset = token_.offset;
        if (!expect(Kind::word, "the name of a parameter")) return out;
        const auto end = out.parameters.end() - 1;
        if (std::find(out.parameters.begin(), end, *end) != end) {
          fail(offset, quoted(*end) + " is a parameter twice; give each parameter its own name");
        }
      } while (token_.kind == Kind::comma && !failed());
      if (!expect(Kind::right_paren, "\",\" or \")\"")) return out;
    }
    if (failed()) return out;
    if (token_.kind != Kind::assign) {
      unexpected("\"=\" and the meaning of " + std::string(out.name));
      return out;
    }
    advance();
    out.body = expression_tree();
    if (failed()) return out;
    if (token_.kind != Kind::end && token_.kind != Kind::separator) {
      unexpected("an operator, \";\" or the end of the line");
    }
    std::string_view text = source_.text.substr(begin, token_.offset - begin);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
    out.text = text;
    return out;
  }

  std::int32_t add(Term term) {
    if (failed()) return -1;
    if (tree_.terms.size() >= static_cast<std::size_t>(max_terms)) {
      return fail(term.offset, "more than " + std::to_string(max_terms) +
                                   " terms; that is the limit; put large tables into an array");
    }
    int depth = 0;
    for (std::size_t i = 0; i < term.children.size(); ++i) {
      const Term& child = tree_.at(term.children[i]);
      // `a | b | c` is walked in a loop, so its length is no nesting.
      const bool chain = i == 0 && term.kind == Term::Kind::binary && child.kind == term.kind;
      depth = std::max(depth, child.depth - (chain ? 1 : 0));
    }
    term.depth = depth + 1;
    if (term.depth > max_nesting) return too_deep(term.offset);
    tree_.terms.push_back(std::move(term));
    return static_cast<std::int32_t>(tree_.terms.size()) - 1;
  }

  std::int32_t too_deep(std::size_t offset) {
    return fail(offset, "nested more than " + std::to_string(max_nesting) +
                            " deep; that is the limit; split it into definitions or an array");
  }

  Term term_here(Term::Kind kind) const {
    Term term;
    term.kind = kind;
    term.offset = token_.offset;
    term.text = token_.text;
    term.integer = token_.integer;
    term.real = token_.real;
    return term;
  }

  std::int32_t expression() {
    if (failed()) return -1;
    if (++nesting_ > max_nesting) return too_deep(token_.offset);
    std::int32_t out = binary(1);
    if (!failed() && token_.kind == Kind::question) {
      Term term = term_here(Term::Kind::choice);
      advance();
      const std::int32_t yes = expression();
      if (!expect(Kind::colon, "\":\" of condition ? a : b")) return -1;
      const std::int32_t no = expression();
      term.children = {out, yes, no};
      out = add(std::move(term));
    }
    --nesting_;
    return out;
  }

  std::int32_t binary(int least) {
    std::int32_t left = unary();
    while (!failed()) {
      const int binds = strength(token_.kind);
      if (binds == 0 || binds < least) break;
      left = binds == comparison_strength ? comparison(left) : operation(left, binds);
    }
    return left;
  }

  std::int32_t operation(std::int32_t left, int binds) {
    Term term = term_here(Term::Kind::binary);
    term.operators = {token_.kind};
    advance();
    const std::int32_t right = binary(binds + 1);
    term.children = {left, right};
    return add(std::move(term));
  }

  std::int32_t comparison(std::int32_t left) {
    Term term = term_here(Term::Kind::compare);
    term.children = {left};
    while (!failed() && strength(token_.kind) == comparison_strength) {
      term.operators.push_back(token_.kind);
      advance();
      term.children.push_back(binary(comparison_strength + 1));
    }
    return add(std::move(term));
  }

  std::int32_t unary() {
    if (failed()) return -1;
    if (token_.kind != Kind::minus && token_.kind != Kind::exclamation) return primary();
    if (++nesting_ > max_nesting) return too_deep(token_.offset);
    Term term = term_here(Term::Kind::unary);
    term.operators = {token_.kind};
    advance();
    term.children = {unary()};
    --nesting_;
    return add(std::move(term));
  }

  std::int32_t primary() {
    switch (token_.kind) {
      case Kind::integer:
        return leaf(Term::Kind::integer);
      case Kind::real:
        return leaf(Term::Kind::real);
      case Kind::word:
        return named();
      case Kind::left_paren: {
        advance();
        const std::int32_t out = expression();
        if (!expect(Kind::right_paren, "an operator or \")\"")) return -1;
        return out;
      }
      default:
        return unexpected("a number, a name, a call or \"(\"");
    }
  }

  std::int32_t leaf(Term::Kind kind) {
    Term term = term_here(kind);
    advance();
    return add(std::move(term));
  }

  std::int32_t named() {
    Term term = term_here(Term::Kind::word);
    advance();
    if (failed()) return -1;
    if (token_.kind == Kind::left_paren) {
      term.kind = Term::Kind::call;
      if (!list(term, Kind::right_paren, "an operator, \",\" or \")\"")) return -1;
    } else if (token_.kind == Kind::left_bracket) {
      term.kind = Term::Kind::index;
      if (!list(term, Kind::right_bracket, "an operator, \",\" or \"]\"")) return -1;
    }
    return add(std::move(term));
  }

  bool list(Term& term, Kind close, const std::string& expected) {
    do {
      advance();
      if (token_.kind == close && term.children.empty()) {
        fail(term.offset, quoted(term.text) + " with nothing between the brackets; write " +
                              std::string(term.text) + " alone, or give what it takes");
      }
      term.children.push_back(expression());
    } while (!failed() && token_.kind == Kind::comma);
    return expect(close, expected);
  }

  Source source_;
  Lexer lexer_;
  Token token_;
  Token before_;
  Tree tree_;
  int nesting_ = 0;
  std::optional<Status> error_;
};

}  // namespace

Result<Tree> parse_expression(const Source& source) {
  return Parser(source, false).whole_expression();
}

Result<std::vector<ParsedDefinition>> parse_definitions(const Source& source) {
  return Parser(source, true).definitions();
}

}  // namespace onepass::lang
