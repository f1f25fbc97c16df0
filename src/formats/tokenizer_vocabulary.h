// The vocabulary of a tokenizer, compact: one string of all tokens, offsets by id, a hash table from token to id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Immutable once built; may be read from several threads.
class TokenVocabulary {
 public:
  static constexpr int32_t kNone = -1;

  // What happens to a token that has two ids: an error, or find() returns the highest.
  enum class Repeated { refused, highest_id };

  // Collects tokens with ids in any order.
  class Builder {
   public:
    // Adds a token. The id must be below kIdLimit.
    void add(std::string_view token, uint32_t id);
    size_t size() const { return entries_.size(); }
    // Throws Error(format), naming `source`, if two tokens share an id, if a token is repeated and that is refused, or
    // if the ids leave so many gaps that a table by id would be too large.
    TokenVocabulary finish(const std::string& source, Repeated repeated = Repeated::refused) &&;

   private:
    friend class TokenVocabulary;
    struct Entry {
      uint32_t id;
      uint32_t offset;
    };
    std::string text_;
    std::vector<Entry> entries_;
  };

  static constexpr uint32_t kIdLimit = 1U << 24;

  // The id of a token, or kNone.
  int32_t find(std::string_view token) const;
  bool contains(uint32_t id) const { return id < present_.size() && present_[id]; }
  // The token of an id, empty if there is none.
  std::string_view token(uint32_t id) const {
    return contains(id) ? std::string_view(text_).substr(offsets_[id], offsets_[id + 1] - offsets_[id])
                        : std::string_view();
  }
  // Number of tokens, and the highest id + 1.
  size_t size() const { return size_; }
  uint32_t id_limit() const { return static_cast<uint32_t>(present_.size()); }
  // Heap bytes held.
  int64_t memory_bytes() const;

 private:
  void build_index(const std::string& source, Repeated repeated);
  size_t first_slot(std::string_view token) const;

  std::string text_;
  std::vector<uint32_t> offsets_;  // by id, and the end
  std::vector<bool> present_;
  std::vector<uint32_t> slots_;  // id + 1; 0: free
  size_t size_ = 0;
};

}  // namespace headroom
