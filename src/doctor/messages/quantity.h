// Parses numbers and amounts of memory as people and programs write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "doctor/messages/squeezed.h"

namespace headroom::doctor {

// The units that an amount may have. kDecimal is for frameworks whose "GB" is 1000^3; PyTorch's MPS, Paddle, seff,
// SGLang and Ray mean 1024^3.
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
  size_t end = 0;          // byte after it, in the squeezed text
};

// The amount at `at`. nullopt when there is no number with a permitted unit, when the text ends before the number is
// certainly complete, or when it exceeds 63 bits. Understands "12.5", "12,5", "4,096", "1,234.5", "1.234,5".
std::optional<Quantity> quantity_at(const Squeezed& text, size_t at, uint32_t units);

struct Number {
  int64_t value = 0;
  size_t end = 0;
};
// The whole number at `at` ("4,096" is 4096). One that ends with the text may be cut, and counts only with `may_end`.
std::optional<Number> whole_number_at(const Squeezed& text, size_t at, bool may_end = false);

struct Real {
  double value = 0;
  size_t end = 0;
};
// "0.9", "0,9"; `may_end` as above.
std::optional<Real> real_at(const Squeezed& text, size_t at, bool may_end = false);

// The amount that a whole text consists of, such as "12.5 GiB" or "1234K": for tables.
std::optional<Quantity> parse_quantity(std::string_view text, uint32_t units);

}  // namespace headroom::doctor
