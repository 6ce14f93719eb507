#include "cuda/backward_arrays.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "core/dense.h"
#include "core/rounding.h"
#include "cuda/kernel_text.h"
#include "lang/cuda_text.h"

namespace onepass::cuda {
namespace {

constexpr std::int64_t tile = 32;  // rows and keys
constexpr std::int64_t most_chains = 512;
// Doubles of all copies of one array.
constexpr std::int64_t most_copied = std::int64_t{4} << 20;
constexpr std::int64_t alignment = 256;
constexpr std::int64_t blocks_of_sums = 1024;

// As in kernels/backward_arrays.cuh.
struct Chains {
  void* sums = nullptr;
  std::int64_t elements = 0;
  std::int64_t heads = 0, ranges = 0;
  std::int64_t count() const { return heads * ranges; }
};

// As in kernels/backward_sums.cuh.
struct SumsCall {
  void* sums = nullptr;
  std::int64_t bytes = 0;
  std::int64_t elements = 0, chains = 0;
  void* gradient = nullptr;
  std::int64_t shape[4] = {1, 1, 1, 1}, strides[4] = {};
};

/// How one gradient is added up.
struct Layout {
  Chains chains;
  bool copied = true;
  std::int64_t bytes = 0;  // of workspace
};

Layout layout_of(const Problem& p, std::int64_t darg) {
  const TensorView& gradient = p.dargs[static_cast<std::size_t>(darg)].gradient;
  const std::int64_t elements = gradient.elements();
  const std::int64_t heads = p.b * p.h_kv, tiles = divide_up(p.s_kv, tile);
  // Sums of their own: any chains, as many as there is room for.
  const std::int64_t room =
      std::clamp<std::int64_t>(most_copied / std::max<std::int64_t>(elements, 1), 1, most_chains);
  Layout copies;
  copies.chains.heads = std::min(heads, room);
  copies.chains.ranges = std::min(tiles, room / std::max<std::int64_t>(copies.chains.heads, 1));
  copies.chains.elements = elements;
  // Elements of their own.
  Layout direct{.chains = {.heads = heads, .ranges = tiles}, .copied = false};
  bool any = false;
  for (const ArrayTerm& term : p.terms) {
    if (term.darg != darg) continue;
    any = true;
    if (!term.own_head) direct.chains.heads = std::min<std::int64_t>(heads, 1);
    if (!term.own_key) direct.chains.ranges = std::min<std::int64_t>(tiles, 1);
  }
  if (!any) copies.chains.heads = 0;
  const bool more = direct.chains.count() > copies.chains.count();
  if (any && dense(gradient) && more) return direct;
  copies.bytes = round_up(copies.chains.count() * elements * 8, alignment);
  return copies;
}

/// Of the program of a place, its integer: a float does not hold every number.
lang::Program integer_of(const lang::Program& place) {
  lang::Program out = place;
  if (out.top().op == lang::Op::to_real) out.root = out.top().operand[0];
  return out;
}

/// As Places in kernels/backward_arrays.cuh.
std::int64_t places_of(const ArrayTerm& term) {
  const unsigned varies = term.place.top().varies;
  if ((varies & (lang::varies_query | lang::varies_key)) == 0) return 0;
  return term.own_pair ? 1 : 2;
}

Constants constants_of_term(const ArrayTerm& term) {
  return {{"tile_rows", tile}, {"tile_keys", tile}, {"places", places_of(term)}};
}

template <std::size_t number>
std::string term_source(const Problem& p) {
  const ArrayTerm& term = p.terms[number];
  const bool fast = p.dtype != DType::float32;
  return backward_preamble(p, constants_of_term(term)) +
         std::string("namespace config {\nusing Sum = ") +
         (layout_of(p, term.darg).copied ? "double" : "float") + ";\n}\n" +
         lang::cuda_text(term.factor, {.name = "factor_text", .fast = fast}) +
         lang::cuda_text(integer_of(term.place), {.name = "place_text"}) +
         kernel_text("cuda/kernels/backward_arrays.cuh");
}

using Source = std::string (*)(const Problem&);
template <std::size_t... numbers>
constexpr std::array<Source, sizeof...(numbers)> term_sources(std::index_sequence<numbers...>) {
  return {term_source<numbers>...};
}
constexpr auto sources_of_terms = term_sources(std::make_index_sequence<most_backward_terms>());

KernelSource kernel_of(const Problem& p, std::size_t number) {
  const ArrayTerm& term = p.terms[number];
  std::string key = backward_configuration(p, constants_of_term(term));
  key += layout_of(p, term.darg).copied ? "copied" : "direct";
  lang::add_cuda_text_key(term.factor, key);
  lang::add_cuda_text_key(integer_of(term.place), key);
  return {"backward_arrays", std::move(key), sources_of_terms[number]};
}

std::string sums_source(const Problem&) { return kernel_text("cuda/kernels/backward_sums.cuh"); }

template <class T>
void append(std::vector<std::byte>& to, const T& value) {
  const std::size_t end = to.size();
  to.resize(end + sizeof value);
  std::memcpy(to.data() + end, &value, sizeof value);
}

std::vector<std::byte> term_call(const Problem& p, const ArrayTerm& term, void* workspace,
                                 const Chains& chains) {
  std::vector<std::byte> bytes = backward_call_bytes(p, workspace);
  const lang::Program place = integer_of(term.place);
  append_parameters({&term.factor, &place}, bytes);
  append(bytes, chains);
  return bytes;
}

SumsCall sums_call(const TensorView& gradient, const Layout& layout) {
  SumsCall call;
  call.elements = gradient.elements();
  call.chains = layout.chains.count();
  call.bytes = layout.copied ? call.chains * call.elements * 8 : call.elements * 4;
  call.gradient = gradient.data;
  for (std::size_t dim = 0; dim < static_cast<std::size_t>(gradient.rank); ++dim) {
    call.shape[dim] = gradient.shape[dim], call.strides[dim] = gradient.strides[dim];
  }
  return call;
}

}  // namespace

std::int64_t array_sums_bytes(const Problem& p) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < p.dargs.size(); ++i) {
    bytes += layout_of(p, static_cast<std::int64_t>(i)).bytes;
  }
  return bytes;
}

std::vector<KernelSource> array_sources(const Problem& p) {
  std::vector<KernelSource> sources;
  for (std::size_t i = 0; i < p.dargs.size(); ++i) {
    const auto darg = static_cast<std::int64_t>(i);
    sources.push_back({"backward_clear_sums", {}, sums_source});
    for (std::size_t term = 0; term < p.terms.size(); ++term) {
      if (p.terms[term].darg == darg) sources.push_back(kernel_of(p, term));
    }
    if (layout_of(p, darg).copied) sources.push_back({"backward_finish_sums", {}, sums_source});
  }
  return sources;
}

Status launch_arrays(const Problem& p, void* workspace, void* sums, BackwardLaunches& launches) {
  auto* copies = static_cast<std::byte*>(sums);
  for (std::size_t i = 0; i < p.dargs.size(); ++i) {
    const auto darg = static_cast<std::int64_t>(i);
    const TensorView& gradient = p.dargs[i].gradient;
    const Layout layout = layout_of(p, darg);
    SumsCall call = sums_call(gradient, layout);
    call.sums = layout.copied ? copies : gradient.data;
    const std::int64_t blocks =
        gradient.elements() == 0
            ? 0
            : std::min<std::int64_t>(blocks_of_sums, (call.bytes + 1023) / 1024 + 1);
    if (Status s = launches.start(blocks, &call); !s.ok()) return s;
    for (const ArrayTerm& term : p.terms) {
      if (term.darg != darg) continue;
      Chains chains = layout.chains;
      chains.sums = call.sums;
      const std::vector<std::byte> bytes = term_call(p, term, workspace, chains);
      if (Status s = launches.start(chains.count(), bytes.data()); !s.ok()) return s;
    }
    copies += layout.bytes;
    if (!layout.copied) continue;
    if (Status s = launches.start(blocks, &call); !s.ok()) return s;
  }
  return {};
}

}  // namespace onepass::cuda
