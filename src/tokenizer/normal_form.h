// Unicode normalization: NFC, NFD, NFKC, NFKD (UAX #15), for the characters that the normalizers of HF tokenizers know.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// Normalizes texts to one form. Const members are thread-safe.
class NormalFormConverter {
 public:
  explicit NormalFormConverter(NormalForm form);

  NormalForm form() const { return form_; }

  // The normal form of valid UTF-8. The part before the first character that could change is copied unchanged.
  std::string convert(std::string_view utf8) const;

  // Whether cutting between these neighbours never changes the normal form, the left one is normalized as if it were
  // alone, and the right one's normal form begins as if it were alone.
  bool keeps_apart(char32_t left, char32_t right) const;

  // Heap bytes held.
  int64_t memory_bytes() const;

 private:
  struct Mark;
  void decompose(char32_t code, std::vector<Mark>& out) const;
  char32_t compose(char32_t first, char32_t second) const;
  void compose_all(std::vector<Mark>& marks) const;
  void flush(std::vector<Mark>& pending, std::string& out) const;
  bool is_inert(char32_t code) const;
  bool begins_segment(const std::vector<Mark>& parts) const;

  NormalForm form_;
  bool composes_;
  bool compatibility_;
  std::vector<uint16_t> by_parts_;          // composing entries of canonical_pairs, ordered by (first, second)
  std::vector<char32_t> starting_seconds_;  // their second parts of combining class 0
};

}  // namespace headroom
