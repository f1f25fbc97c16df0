// The header of a GGUF file, parsed and checked: metadata and the table of tensors. Layout: "GGUF", version (u32),
// number of tensors and of metadata entries (u64), the entries (key, type, value), the tensors (name, dimensions from
// the innermost, type, offset), padding to the alignment, the data. Little-endian; a text is its length (u64) and
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/ggml_blocks.h"
#include "formats/json.h"

namespace headroom {

// Bytes by offset: of a file, or in memory.
struct ByteSource {
  int64_t size = 0;
  std::function<void(int64_t offset, std::span<std::byte> into)> read;
  std::string name;  // in errors
};

// Types of metadata, by their numbers in a file.
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

// An array of the metadata, which is not held: where its elements begin.
struct GgufArray {
  GgufType type = GgufType::u8;
  int64_t count = 0;
  int64_t offset = 0;
};

struct GgufTensor {
  std::string name;
  GgmlType type = GgmlType::f32;
  std::vector<int64_t> shape;  // from the outermost
  int64_t offset = 0;          // of its first byte, from the file's beginning
  int64_t bytes = 0;

  int64_t elements() const;
};

struct GgufHeader {
  std::map<std::string, Json, std::less<>> values;  // numbers, booleans and texts
  std::map<std::string, GgufArray, std::less<>> arrays;
  std::vector<GgufTensor> tensors;  // in the file's order

  const GgufTensor* find(std::string_view name) const;
};

// What metadata holds at most: entries, and bytes of texts that are kept (longer ones than kMostText are refused).
inline constexpr int64_t kMostGgufEntries = 65536, kMostGgufText = int64_t{1} << 20, kMostGgufName = 127;

// Versions 2 and 3. Reads nothing behind source.size and holds no array. Throws Error(format) naming source, entry or
// tensor, and offset: for sizes and counts that the file cannot have, repeated names, types that are not read, tensors
// that overlap, are not aligned or end behind the file.
GgufHeader parse_gguf_header(const ByteSource& source);

// A bound of the heap that the result takes, from the first bytes alone; 0 for what is not a GGUF.
int64_t gguf_table_bytes(const ByteSource& source);

// text(i, element) for the elements of an array of texts. Throws Error(format) for another type, or a text of more than
// kMostGgufText bytes.
void each_gguf_text(const ByteSource& source, const GgufArray& array,
                    const std::function<void(int64_t, std::string_view)>& text);
// The same of an array of numbers.
void each_gguf_number(const ByteSource& source, const GgufArray& array,
                      const std::function<void(int64_t, double)>& number);

}  // namespace headroom
