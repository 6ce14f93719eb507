#include "api/call.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>

#include "core/prepare.h"
#include "core/registry.h"
#include "cuda/stream_memory.h"

namespace onepass {
namespace {

constexpr std::align_val_t workspace_alignment{64};

struct WorkspaceDelete {
  Device device;
  void* stream = nullptr;
  void operator()(void* memory) const {
    if (device.kind == Device::Kind::cuda) return cuda::give_back(memory, device.index, stream);
    ::operator delete(memory, workspace_alignment);
  }
};
using Workspace = std::unique_ptr<void, WorkspaceDelete>;

// Throws when ONEPASS_ISA, `threads` or the device asks for what is not here.
Capabilities capabilities_for(Device device, int threads) {
  if (threads < 0 || threads > max_threads) {
    throw Error(Status::invalid("threads: " + std::to_string(threads) + "; 0 to " +
                                std::to_string(max_threads) +
                                " are allowed; pass 0 for OMP_NUM_THREADS or every core"));
  }
  if (device.kind == Device::Kind::cuda) return value_or_throw(cuda_capabilities(device.index));
  return value_or_throw(cpu_capabilities(threads));
}

Status no_memory(std::int64_t bytes, const std::string& why) {
  return {Code::runtime_error, "workspace: no memory for " + std::to_string(bytes) + " bytes" +
                                   why + "; that much is needed; use fewer threads or free memory"};
}

// The caller's workspace where there is one, else memory that lives as long as the call; on a GPU
// as long as its work on the stream.
Workspace provide_workspace(const Plan& plan, Device device, Exec& exec) {
  if (exec.workspace != nullptr) {
    if (exec.workspace_bytes < plan.workspace_bytes ||
        reinterpret_cast<std::uintptr_t>(exec.workspace) % 64 != 0) {
      throw Error(Status::invalid(
          "workspace: " + std::to_string(exec.workspace_bytes) + " bytes; at least " +
          std::to_string(plan.workspace_bytes) +
          " bytes aligned to 64 are needed; ask plan() for workspace_bytes, or pass null"));
    }
    return nullptr;
  }
  if (plan.workspace_bytes == 0) return nullptr;
  Workspace memory(nullptr, {device, exec.stream});
  if (device.kind == Device::Kind::cuda) {
    const Result<void*> taken = cuda::take(plan.workspace_bytes, device.index, exec.stream);
    if (!taken.ok())
      throw Error(no_memory(plan.workspace_bytes, " (" + taken.status().message + ")"));
    memory.reset(taken.value());
  } else {
    memory.reset(::operator new(static_cast<std::size_t>(plan.workspace_bytes), workspace_alignment,
                                std::nothrow));
    if (memory == nullptr) throw Error(no_memory(plan.workspace_bytes, ""));
  }
  exec.workspace = memory.get();
  exec.workspace_bytes = plan.workspace_bytes;
  return memory;
}

void announce(const Problem& problem, const Plan& plan) {
  const char* verbose = std::getenv("ONEPASS_VERBOSE");
  if (verbose == nullptr || std::string_view(verbose) != "1") return;
  std::fprintf(stderr, "onepass: %s -> %s\n", problem.line().c_str(), plan.kernel.c_str());
}

}  // namespace

Plan plan_for(const Problem& problem, int threads) {
  return value_or_throw(make_plan(problem, capabilities_for(problem.device, threads)));
}

Plan prepare_for(const Problem& problem, int threads) {
  const Capabilities capabilities = capabilities_for(problem.device, threads);
  Plan plan = value_or_throw(prepare(problem, capabilities));
  explain_choice(problem, capabilities, plan);
  return plan;
}

void start(const Problem& problem, const Plan& plan, const Exec& exec) {
  announce(problem, plan);
  Exec run = exec;
  const Workspace workspace = provide_workspace(plan, problem.device, run);
  if (Status status = row_of(plan).launch(problem, plan, run); !status.ok()) throw Error(status);
}

Plan prepare_to_run(const Problem& problem, const Exec& exec) {
  if (Status status = validate_memory(problem); !status.ok()) throw Error(status);
  const Capabilities capabilities = capabilities_for(problem.device, exec.threads);
  return value_or_throw(prepare(problem, capabilities, exec.stream));
}

void run(const Problem& problem, const Exec& exec) {
  start(problem, prepare_to_run(problem, exec), exec);
}

}  // namespace onepass
