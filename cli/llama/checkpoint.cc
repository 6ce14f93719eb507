#include "cli/llama/checkpoint.h"

#include <array>
#include <cstring>
#include <utility>

#include "cli/parts/file.h"

namespace onepass::cli::llama {
namespace {

constexpr std::size_t header_bytes = 7 * sizeof(std::int32_t);
// No size of a real model is larger; products of three of them fit int64.
constexpr std::int64_t largest_size = 1 << 20;

Status refused(const std::string& found) {
  return Status::invalid(
      found + "; a llama2.c checkpoint (version 0, float32) is expected; check the file");
}

Result<Shape> parse_shape(std::string_view bytes) {
  std::array<std::int32_t, 7> header{};
  if (bytes.size() < header_bytes) {
    return refused("the file has " + std::to_string(bytes.size()) + " bytes, less than a header");
  }
  std::memcpy(header.data(), bytes.data(), header_bytes);
  static constexpr std::array names{"dim",      "hidden",     "layers", "heads",
                                    "kv_heads", "vocabulary", "context"};
  Shape shape;
  shape.tied_head = header[5] > 0;
  const std::array<std::int64_t*, 7> sizes{&shape.dim,    &shape.hidden,   &shape.layers,
                                           &shape.heads,  &shape.kv_heads, &shape.vocabulary,
                                           &shape.context};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t value = header[i];
    *sizes[i] = i == 5 && value < 0 ? -value : value;
    if (*sizes[i] < 1 || *sizes[i] > largest_size) {
      return refused(std::string(names[i]) + " is " + std::to_string(value) +
                     " where 1 to 2^20 makes sense");
    }
  }
  if (shape.dim % shape.heads != 0 || shape.heads % shape.kv_heads != 0 ||
      shape.head_dim() % 2 != 0) {
    return refused("dim " + std::to_string(shape.dim) + ", heads " + std::to_string(shape.heads) +
                   ", kv_heads " + std::to_string(shape.kv_heads) +
                   " do not divide into heads of even size");
  }
  return shape;
}

// Elements of one layer and of everything else; each product fits int64 since sizes are below 2^20.
std::int64_t layer_elements(const Shape& s) {
  return 2 * s.dim + 2 * s.dim * s.dim + 2 * s.kv_dim() * s.dim + 3 * s.hidden * s.dim;
}
std::int64_t rope_elements(const Shape& s) { return s.context * s.head_dim(); }
std::int64_t total_elements(const Shape& s) {
  const std::int64_t embeddings = (s.tied_head ? 1 : 2) * s.vocabulary * s.dim;
  return embeddings + s.layers * layer_elements(s) + s.dim + rope_elements(s);
}

// Hands out consecutive arrays of the weights.
class Cursor {
 public:
  explicit Cursor(std::span<const float> weights) : weights_(weights) {}
  std::span<const float> take(std::int64_t elements) {
    const auto count = static_cast<std::size_t>(elements);
    const std::span<const float> taken = weights_.subspan(at_, count);
    at_ += count;
    return taken;
  }
  /// One array per layer, put into the given member of each.
  void take_each(std::vector<Layer>& layers, std::span<const float> Layer::*member,
                 std::int64_t elements) {
    for (Layer& layer : layers) layer.*member = take(elements);
  }

 private:
  std::span<const float> weights_;
  std::size_t at_ = 0;
};

void assign_views(Checkpoint& model) {
  const Shape& s = model.shape;
  Cursor cursor(model.weights);
  model.embedding = cursor.take(s.vocabulary * s.dim);
  model.layers.resize(static_cast<std::size_t>(s.layers));
  cursor.take_each(model.layers, &Layer::attention_norm, s.dim);
  cursor.take_each(model.layers, &Layer::wq, s.dim * s.dim);
  cursor.take_each(model.layers, &Layer::wk, s.kv_dim() * s.dim);
  cursor.take_each(model.layers, &Layer::wv, s.kv_dim() * s.dim);
  cursor.take_each(model.layers, &Layer::wo, s.dim * s.dim);
  cursor.take_each(model.layers, &Layer::ffn_norm, s.dim);
  cursor.take_each(model.layers, &Layer::w1, s.hidden * s.dim);
  cursor.take_each(model.layers, &Layer::w2, s.dim * s.hidden);
  cursor.take_each(model.layers, &Layer::w3, s.hidden * s.dim);
  model.final_norm = cursor.take(s.dim);
  cursor.take(rope_elements(s));  // tables that nobody reads: the rotation is computed
  model.head = s.tied_head ? model.embedding : cursor.take(s.vocabulary * s.dim);
}

}  // namespace

Result<Checkpoint> parse_checkpoint(std::string_view bytes) {
  Result<Shape> shape = parse_shape(bytes);
  if (!shape.ok()) return shape.status();
  const std::int64_t elements = total_elements(shape.value());
  const auto weight_bytes = static_cast<std::int64_t>(bytes.size() - header_bytes);
  if (weight_bytes % 4 != 0 || weight_bytes / 4 != elements) {
    return refused(std::to_string(weight_bytes) + " bytes of weights where the header promises " +
                   std::to_string(elements) + " float32");
  }
  Checkpoint model;
  model.shape = shape.value();
  model.weights.resize(static_cast<std::size_t>(elements));
  std::memcpy(model.weights.data(), bytes.data() + header_bytes, bytes.size() - header_bytes);
  assign_views(model);
  return model;
}

Result<Checkpoint> read_checkpoint(const std::string& path) {
  const Result<std::string> bytes = read_file(path);
  if (!bytes.ok()) return bytes.status();
  Result<Checkpoint> model = parse_checkpoint(bytes.value());
  if (model.ok()) return model;
  return Status{model.status().code, path + ": " + model.status().message};
}

}  // namespace onepass::cli::llama
