// The type of a value: logical dtype, shape of bounded dimensions, storage, memory tier, optional shard spec.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace headroom {

using SymbolId = int32_t;

// A named dimension whose value is only known per bucket; `bound` is its largest value.
struct Symbol {
  std::string name;
  int64_t bound = 0;
  bool operator==(const Symbol&) const = default;
};

// Part `part` of a length cut into `parts`: the first length % parts of them are one longer than the others, so that
// none is empty where the length is at least `parts`, and none grows when the length falls.
constexpr int64_t part_length(int64_t length, int64_t part, int64_t parts) {
  return length / parts + (part < length % parts ? 1 : 0);
}
// Where it begins.
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

// Where a value lives. On the CPU device and host are the same memory.
enum class Tier : uint8_t { device, host, disk };

// How elements are stored: dense, or in blocks of `block` elements with a payload of `payload_bits` each and one scale
// of `scale` per block (sub-byte formats such as nf4 have payload_bits 4).
struct Storage {
  int32_t block = 0;  // 0 = dense
  int32_t payload_bits = 0;
  DType scale = DType::f32;
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

// A value for each symbol of a graph, by SymbolId.
using Bindings = std::vector<int64_t>;

// A type with every dimension known: what a kernel sees. `dims` are the local ones when the type is sharded.
struct ConcreteType {
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
  Storage storage = {};
  bool operator==(const ConcreteType&) const = default;
};

int64_t dim_value(const Dim& dim, const Bindings& bindings);
ConcreteType concrete(const Type& type, const Bindings& bindings);
// The same in place of `out`, whose memory is used again.
void concrete(const Type& type, const Bindings& bindings, ConcreteType& out);
// The constant dimensions joined by commas: "49152,576".
std::string dims_text(const Type& type);
// Product of the dimensions; 1 for a scalar.
int64_t element_count(std::span<const int64_t> dims);
// Bytes of the stored form, scales included.
int64_t storage_bytes(const ConcreteType& type);

}  // namespace headroom
