// onepass: exact attention from the shell. Data on stdout, talk on stderr; exit code 0 done, 1
// failed, 2 the command line or a file it names is wrong, 3 not available here.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "cli/parts/print.h"
#include "cli/verbs.h"
#include "onepass/onepass.h"

namespace onepass::cli {
namespace {

constexpr int failed = 1;
constexpr int usage = 2;
constexpr int not_available = 3;

int exit_code_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
    case Code::type_error:
      return usage;
    case Code::not_supported:
      return not_available;
    default:
      return failed;
  }
}

int say(const std::string& message, int exit_code) {
  std::fprintf(stderr, "onepass: %s\n", message.c_str());
  return exit_code;
}

// What was printed must have arrived.
int finish(int exit_code) {
  try {
    flush_stdout();
    return exit_code;
  } catch (const Error& error) {
    return say(error.what(), failed);
  }
}

// Options left empty by a script whose variable is not set. Some texts may be empty.
void refuse_empty_options(CLI::App& verb) {
  const CLI::Validator filled(
      [](const std::string& value) {
        return value.empty() ? std::string("\"\"; a value is allowed; write one or leave it out")
                             : "";
      },
      "");
  for (CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    const bool may_be_empty = option->get_positional() || name == "--mask" || name == "--score" ||
                              name == "--definitions" || name == "--prompt";
    if (!may_be_empty) option->check(filled);
  }
}

// Help and version go to stdout; everything else is one message of the form
// `argument: what was found; what is allowed; what to try`.
int report(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    app.exit(error);
    return finish(0);
  }
  // Ours, and in full already.
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return say(error.what(), usage);
  // `--out: 1 required TEXT missing` and the like.
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string text = error.what(), option = text.substr(0, text.find(": "));
    const bool none = text.find("missing") != std::string::npos;
    return say(option + (none ? ": no value follows; one is needed; write it after the option"
                              : ": given more than once; once is allowed; drop all but one"),
               usage);
  }
  const auto chosen = app.get_subcommands();
  const std::string verb = chosen.empty() ? "" : " " + chosen.front()->get_name();
  std::string found = error.what();
  if (chosen.empty()) {
    found =
        app.remaining_size() == 0 ? "no verb" : '"' + app.remaining().front() + "\" is not a verb";
    found += "; verbs:";
    for (const CLI::App* known : app.get_subcommands({})) found += ' ' + known->get_name();
    return say("command line: " + found + "; see them with: onepass --help", usage);
  }
  const bool causal = found.find("--causal") != std::string::npos ||
                      found.find("--is-causal") != std::string::npos ||
                      found.find("--is_causal") != std::string::npos;
  return say("command line: " + found + "; what onepass" + verb + " takes is allowed; " +
                 (causal ? "write --mask causal" : "see it with: onepass" + verb + " --help"),
             usage);
}

int run(int argc, char** argv) {
  CLI::App app{"Exact attention in one pass: any mask, any score, checked against float64.",
               "onepass"};
  app.set_version_flag("--version", std::string("onepass ") + version());
  app.require_subcommand(1);
  app.get_formatter()->column_width(28);
  app.get_formatter()->label("TEXT", "VALUE");
  app.get_formatter()->label("REQUIRED", "(required)");
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.footer(
      "onepass VERB --help says more. Data goes to stdout, talk to stderr. Exit code: 0 done, 1 "
      "failed,\n2 the command line or a file it names is wrong, 3 not available here.\n");
  int exit_code = 0;
  add_run(app, exit_code);
  add_bench(app, exit_code);
  add_profile(app, exit_code);
  add_explain(app, exit_code);
  add_generate(app, exit_code);
  add_learn(app, exit_code);
  add_demo(app, exit_code);
  add_check(app, exit_code);
  add_warm(app, exit_code);
  for (CLI::App* verb : app.get_subcommands({})) {
    verb->group("Verbs");
    refuse_empty_options(*verb);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report(app, error);
  } catch (const Error& error) {
    return say(error.what(), exit_code_of(error.code));
  } catch (const std::bad_alloc&) {
    return say("memory: too little for this call; sizes that fit are allowed; use smaller ones",
               failed);
  } catch (const std::exception& error) {
    return say(std::string("system: ") + error.what() +
                   "; a call that runs through is expected; report this one with its command line",
               failed);
  }
  return finish(exit_code);
}

}  // namespace
}  // namespace onepass::cli

int main(int argc, char** argv) { return onepass::cli::run(argc, argv); }
