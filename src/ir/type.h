// The type of a value: logical dtype, shape of bounded dimensions, storage, memory tier, optional shard spec.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/block_codes.h"
#include "ir/dtype.h"

namespace headroom {

using SymbolId = int32_t;

// A named dimension whose value is only known per length bucket; `bound` is its largest value.
struct Symbol {
  std::string name;
  int64_t bound = 0;
  bool operator==(const Symbol&) const = default;
};

// The length of part `part` of a length cut into `parts`: the first length % parts of them are longer by one, so that
// no part is empty if length >= parts, and no part grows when the length shrinks.
constexpr int64_t part_length(int64_t length, int64_t part, int64_t parts) {
  return length / parts + (part < length % parts ? 1 : 0);
}
// Where the part begins.
constexpr int64_t part_begin(int64_t length, int64_t part, int64_t parts) {
  const int64_t longer = length % parts;
  return length / parts * part + (part < longer ? part : longer);
}

// A constant (`symbol` < 0), a symbol, or one of `parts` parts of a symbol.
struct Dim {
  int64_t constant = 0;
  SymbolId symbol = -1;
  int32_t part = 0;
  int32_t parts = 1;
  static Dim of(int64_t constant) { return {constant, -1}; }
  static Dim of_symbol(SymbolId symbol) { return {0, symbol}; }
  static Dim of_part(SymbolId symbol, int32_t part, int32_t parts) { return {0, symbol, part, parts}; }
  bool operator==(const Dim&) const = default;
};

// Where a value is stored. On the CPU, device and host are the same memory.
enum class Tier : uint8_t { device, host, disk };

// How elements are stored: dense, or in blocks of `block` elements in row-major order, each element a code of
// `payload_bits` bits and each block with a scale: an element is its code's value times the scale of its block. The
// codes come first, then the scales (storage_layout). With `scale_block` the scales are codes too.
struct Storage {
  int32_t block = 0;  // 0 = dense
  int32_t payload_bits = 0;
  DType scale = DType::f32;
  CodeTable codes = CodeTable::integer;
  int32_t scale_block = 0;  // scales per block of their 8-bit codes; 0: scales are stored as they are
  bool dense() const { return block == 0; }
  bool operator==(const Storage&) const = default;
};

// The value is one of `parts` equal slices along `axis` (the last may be padded).
struct ShardSpec {
  int32_t axis = 0;
  int32_t parts = 1;
  bool operator==(const ShardSpec&) const = default;
};

struct Type {
  DType dtype = DType::f32;
  std::vector<Dim> shape;
  Storage storage = {};
  Tier tier = Tier::device;
  std::optional<ShardSpec> shard = std::nullopt;
  bool operator==(const Type&) const = default;
};

// A value for each symbol of a graph, indexed by SymbolId.
using Bindings = std::vector<int64_t>;

// A type with all dimensions known: what a kernel sees. `dims` are those of the shard if the type is sharded.
struct ConcreteType {
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
  Storage storage = {};
  bool operator==(const ConcreteType&) const = default;
};

int64_t dim_value(const Dim& dim, const Bindings& bindings);
ConcreteType concrete(const Type& type, const Bindings& bindings);
// The same written to `out`, whose memory is reused.
void concrete(const Type& type, const Bindings& bindings, ConcreteType& out);
// The constant dimensions joined by commas: "49152,576".
std::string dims_text(const Type& type);
// Product of the dimensions; 1 for a scalar.
int64_t element_count(std::span<const int64_t> dims);
// The layout of a value in blocks, in bytes from its beginning: the codes first, then the scales. If the scales are
// codes, the f32 scale of each of their blocks follows and, last, one f32 that is added to all: scale = the code's
// value times its block's scale, plus that f32.
struct StorageLayout {
  int64_t scales = 0;
  int64_t scale_count = 0;
  int64_t scale_scales = 0;  // f32 scales of the codes of scales
  int64_t scale_scale_count = 0;
  int64_t bytes = 0;
};
StorageLayout storage_layout(const Storage& storage, int64_t elements);

// Bytes of the stored form, scales included.
int64_t storage_bytes(const ConcreteType& type);

}  // namespace headroom
