#include "base/find_text.h"

#include <bit>
#include <cstring>
#include <functional>

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

constexpr size_t kLeastKnown = 1024;
constexpr int kHashBits = 16;

// Of the three bytes at `at`.
size_t hash_of(const char* at) {
  const auto byte = [&](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
  return ((byte(0) | byte(1) << 8 | byte(2) << 16) * 2654435761U) >> (32 - kHashBits);
}

thread_local KnownText* known_texts = nullptr;

}  // namespace

KnownText::KnownText(std::string_view text) : text_(text) {
  if (text.size() < kLeastKnown) return;
  seen_.resize(size_t{1} << (kHashBits - 6));
  for (size_t i = 0; i + 3 <= text.size(); ++i) {
    const size_t hash = hash_of(text.data() + i);
    seen_[hash / 64] |= uint64_t{1} << hash % 64;
  }
  next_ = known_texts;
  known_texts = this;
}

KnownText::~KnownText() {
  for (KnownText** at = &known_texts; *at; at = &(*at)->next_)
    if (*at == this) {
      *at = next_;
      return;
    }
}

bool KnownText::lacks(std::string_view wanted) const {
  for (size_t i = 0; i + 3 <= wanted.size(); ++i) {
    const size_t hash = hash_of(wanted.data() + i);
    if ((seen_[hash / 64] >> hash % 64 & 1) == 0) return true;
  }
  return false;
}

bool KnownText::rules_out(std::string_view text, std::string_view wanted) {
  for (const KnownText* known = known_texts; known; known = known->next_) {
    const std::string_view whole = known->text_;
    if (std::less_equal<>()(whole.data(), text.data()) &&
        std::less_equal<>()(text.data() + text.size(), whole.data() + whole.size()))
      return known->lacks(wanted);
  }
  return false;
}

size_t find_text(std::string_view text, std::string_view wanted, size_t from) {
  if (from > text.size() || wanted.size() > text.size() - from) return std::string_view::npos;
  if (wanted.empty()) return from;
  if (KnownText::rules_out(text, wanted)) return std::string_view::npos;
  return wanted.size() <= kShort ? find_short(text, wanted, from) : find_long(text, wanted, from);
}

}  // namespace headroom
