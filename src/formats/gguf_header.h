// The header of a GGUF file, parsed and checked: metadata and the table of tensors. Layout: "GGUF", version (u32),
// number of tensors and of metadata entries (u64 each), the entries (key, type, value), the tensors (name, dimensions
// from the innermost, type, offset), padding to the alignment, the data. Little-endian; a text is its length (u64) and
// its bytes.
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

// Bytes by offset, of a file or of memory.
struct ByteSource {
  int64_t size = 0;
  std::function<void(int64_t offset, std::span<std::byte> into)> read;
  std::string name;  // for errors
};

// Types of metadata, by their numbers in a file.
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

// An array of the metadata. Its elements are not held; they begin at `offset`.
struct GgufArray {
  GgufType type = GgufType::u8;
  int64_t count = 0;
  int64_t offset = 0;
  int64_t bytes = 0;  // of the elements, with the lengths of texts
};

struct GgufTensor {
  std::string name;
  GgmlType type = GgmlType::f32;
  std::vector<int64_t> shape;  // from the outermost
  int64_t offset = 0;          // of its first byte, from the start of the file
  int64_t bytes = 0;

  int64_t elements() const;
};

struct GgufHeader {
  std::map<std::string, Json, std::less<>> values;  // numbers, booleans and texts
  std::map<std::string, GgufArray, std::less<>> arrays;
  std::vector<GgufTensor> tensors;  // in the file's order

  const GgufTensor* find(std::string_view name) const;
};

// Limits of the metadata: entries (also tensors), bytes of text that is kept in total and of one text, bytes of a name.
inline constexpr int64_t kMostGgufEntries = 65536, kMostGgufText = int64_t{1} << 20, kMostGgufName = 127;

// Parses versions 2 and 3. Does not read beyond source.size; arrays are not held. Throws Error(format) naming source,
// entry or tensor, and offset, for sizes and counts that the file cannot have, repeated names, unsupported types, and
// tensors that overlap, are not aligned or end beyond the file.
GgufHeader parse_gguf_header(const ByteSource& source);

// A bound on the heap bytes of the result, from the first bytes alone; 0 if the source is not a GGUF.
int64_t gguf_table_bytes(const ByteSource& source);

// Calls text(i, element) for each element of an array of texts. Throws Error(format) for another type, or for a text
// longer than kMostGgufText bytes.
void each_gguf_text(const ByteSource& source, const GgufArray& array,
                    const std::function<void(int64_t, std::string_view)>& text);
// The same for an array of numbers.
void each_gguf_number(const ByteSource& source, const GgufArray& array,
                      const std::function<void(int64_t, double)>& number);

}  // namespace headroom
