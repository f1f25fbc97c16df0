// Finding a text in a longer one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace headroom {

// text.find(wanted, from): the first place at `from` or behind it, npos where there is none. Time linear in the text,
// for any two texts. Short ones are found at several bytes per cycle: in a log of 64 KiB in a few microseconds, where
// find() looks at every place of the first character. Thread-safe.
size_t find_text(std::string_view text, std::string_view wanted, size_t from = 0);

// While one lives, find_text() knows on this thread which three bytes in a row a text has, and answers npos at once for
// one that has others, sought in that text or in a part of it: for a text in which thousands are sought and few found.
// The text must not change meanwhile, and the thread that made it ends it. Texts below 1 KiB are searched as before.
class KnownText {
 public:
  explicit KnownText(std::string_view text);
  ~KnownText();
  KnownText(const KnownText&) = delete;
  KnownText& operator=(const KnownText&) = delete;

 private:
  friend size_t find_text(std::string_view text, std::string_view wanted, size_t from);
  // Whether a known text that `text` is a part of lacks something of `wanted`.
  static bool rules_out(std::string_view text, std::string_view wanted);
  bool lacks(std::string_view wanted) const;

  std::string_view text_;
  std::vector<uint64_t> seen_;  // a bit for the hash of each three bytes
  KnownText* next_ = nullptr;   // of this thread
};

}  // namespace headroom
