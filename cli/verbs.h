// The verbs of the program, one file each.
#pragma once

namespace CLI {
class App;
}

namespace onepass::cli {

/// Each adds a verb to the program. A chosen verb runs while the command line is parsed, throws
/// Error for what it cannot do, and may lower exit_code's 0 to 1 where it ran and something failed.
void add_run(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_profile(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_learn(CLI::App& app, int& exit_code);
void add_demo(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_warm(CLI::App& app, int& exit_code);

}  // namespace onepass::cli
