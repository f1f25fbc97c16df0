#include "base/find_text.h"

#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace headroom {
namespace {

// memmem, linear for long texts (Crochemore and Perrin, Two-way string-matching, 1991).
size_t find_long(std::string_view text, std::string_view wanted, size_t from) {
  const void* found = ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

#ifdef __SSE2__
constexpr size_t kStep = 16;   // places that are compared at once
constexpr size_t kShort = 32;  // bounds the time: at every place all bytes may have to be compared

// A place is compared whole only where the first and the last byte are those that are wanted (Mula, SIMD-friendly
// algorithms for substring searching, 2016, "Generic SIMD").
struct Ends {
  __m128i first, last;
  size_t apart;
};

inline __m128i bytes_at(const char* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

// All bits of a byte are set for each of the kStep places from `at` on that has both ends.
inline __m128i ends_at(const char* at, const Ends& ends) {
  return _mm_and_si128(_mm_cmpeq_epi8(bytes_at(at), ends.first), _mm_cmpeq_epi8(bytes_at(at + ends.apart), ends.last));
}

// The first of the places whose ends match where `wanted` stands, those before `from` left out; npos where none is.
size_t confirmed(std::string_view text, std::string_view wanted, size_t at, size_t from, __m128i ends) {
  auto hits = static_cast<unsigned>(_mm_movemask_epi8(ends)) >> (from - at) << (from - at);
  for (; hits != 0; hits &= hits - 1) {
    const size_t place = at + static_cast<size_t>(std::countr_zero(hits));
    if (std::memcmp(text.data() + place, wanted.data(), wanted.size()) == 0) return place;
  }
  return std::string_view::npos;
}

size_t find_short(std::string_view text, std::string_view wanted, size_t from) {
  const size_t places = text.size() - wanted.size() + 1;
  if (places < kStep) return text.find(wanted, from);
  const Ends ends{_mm_set1_epi8(wanted.front()), _mm_set1_epi8(wanted.back()), wanted.size() - 1};
  size_t at = from;
  for (; at + kStep <= places; at += kStep) {
    const __m128i found = ends_at(text.data() + at, ends);
    if (_mm_movemask_epi8(found) == 0) continue;
    if (const size_t place = confirmed(text, wanted, at, at, found); place != std::string_view::npos) return place;
  }
  if (at == places) return std::string_view::npos;
  const size_t last = places - kStep;  // this step overlaps the one before
  return confirmed(text, wanted, last, at, ends_at(text.data() + last, ends));
}
#else
constexpr size_t kShort = 0;
size_t find_short(std::string_view text, std::string_view wanted, size_t from) { return find_long(text, wanted, from); }
#endif

}  // namespace

size_t find_text(std::string_view text, std::string_view wanted, size_t from) {
  if (from > text.size() || wanted.size() > text.size() - from) return std::string_view::npos;
  if (wanted.empty()) return from;
  return wanted.size() <= kShort ? find_short(text, wanted, from) : find_long(text, wanted, from);
}

}  // namespace headroom
