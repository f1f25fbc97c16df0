// Numbers and amounts of memory as people and programs write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "doctor/messages/squeezed.h"

namespace headroom::doctor {

// Which units an amount may carry. Every framework that writes "GB" for 1000^3 is asked for with kDecimal; PyTorch's
// MPS, Paddle, seff, SGLang and Ray mean 1024^3 by it.
enum Units : uint32_t {
  kIec = 1,      // "bytes", "KiB", "MiB", "GiB", "TiB"
  kSi = 2,       // "B", "KB", "MB", "GB", "TB" as powers of 1024
  kDecimal = 4,  // the same as powers of 1000
  kLetter = 8,   // "K", "M", "G", "T", also "Ki", "Mi", "Gi" of Kubernetes, as powers of 1024
  kBare = 16,    // no unit: bytes
};
constexpr uint32_t kAnyBinary = kIec | kSi | kLetter;

struct Quantity {
  int64_t bytes = 0;
  int64_t resolution = 1;  // one unit of the last digit, in bytes, at least 1
  size_t end = 0;          // first byte after it, in the squeezed text
};

// The amount at `at`. nullopt when no number with a permitted unit stands there, when the text is cut before it is
// known to be whole, or when it exceeds 63 bits. "12.5", "12,5", "4,096", "1,234.5", "1.234,5" are understood.
std::optional<Quantity> quantity_at(const Squeezed& text, size_t at, uint32_t units);

struct Number {
  int64_t value = 0;
  size_t end = 0;
};
// The whole number at `at` ("4,096" is 4096). At the end of the text it may be cut, and counts only if `may_end`.
std::optional<Number> whole_number_at(const Squeezed& text, size_t at, bool may_end = false);

struct Real {
  double value = 0;
  size_t end = 0;
};
// "0.9", "0,9": likewise.
std::optional<Real> real_at(const Squeezed& text, size_t at, bool may_end = false);

// A plain text's amount, such as "12.5 GiB" or "1234K": for tables. The whole text must be the amount.
std::optional<Quantity> parse_quantity(std::string_view text, uint32_t units);

}  // namespace headroom::doctor
