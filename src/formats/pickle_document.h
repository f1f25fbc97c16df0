// The values of a pickle: None, booleans, numbers, text, bytes and containers of them, stored compactly.
//
// A value is 8 bytes. Equal texts are stored once and point into the pickle's own bytes; dictionaries with the same
// keys in the same order share them; lists of the same members share their cells. So a memory snapshot takes little
// more than its file, and no pickle takes more than about 40 bytes per byte, however it refers to itself: containers
// refer to each other by number, so shared and even cyclic values cost nothing. Nothing here recurses.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pickle_index.h"

namespace headroom {

// `callable` is a name that the pickle mentions without calling it.
enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  big_integer,
  real,
  text,
  bytes,
  callable,
  list,
  tuple,
  dict,
  set
};
const char* pickle_kind_name(PickleKind kind);

// One value; it has a meaning only together with its document.
class PickleValue {
 public:
  PickleValue() = default;  // None
  PickleKind kind() const { return (bits_ & 15) == kWide ? PickleKind::integer : static_cast<PickleKind>(bits_ & 15); }
  bool is(PickleKind wanted) const { return kind() == wanted; }
  bool is_container() const { return kind() >= PickleKind::list; }
  // True for the same text, integer of at most 60 bits, boolean, None or container; contents are not compared.
  friend bool operator==(PickleValue a, PickleValue b) { return a.bits_ == b.bits_; }
  friend bool operator!=(PickleValue a, PickleValue b) { return a.bits_ != b.bits_; }

 private:
  friend class PickleDocument;
  static constexpr uint64_t kWide = 15;  // an integer stored in integers_
  PickleValue(uint64_t tag, uint64_t payload) : bits_(payload << 4 | tag) {}
  PickleValue(PickleKind kind, uint64_t payload) : PickleValue(static_cast<uint64_t>(kind), payload) {}
  bool is_wide() const { return (bits_ & 15) == kWide; }
  int64_t small_integer() const { return static_cast<int64_t>(bits_) >> 4; }
  size_t index() const { return static_cast<size_t>(bits_ >> 4); }

  uint64_t bits_ = 0;
};

// A vector that grows without moving its elements. Elements are uninitialised until pushed.
template <typename T>
class PickleStore {
 public:
  size_t size() const { return size_; }
  T& operator[](size_t index) { return chunks_[index >> kShift][index & kMask]; }
  const T& operator[](size_t index) const { return chunks_[index >> kShift][index & kMask]; }
  void push(const T& value) {
    if (size_ == chunks_.size() << kShift) chunks_.emplace_back(new T[size_t{1} << kShift]);
    (*this)[size_++] = value;
  }

 private:
  static constexpr size_t kShift = 10, kMask = (size_t{1} << kShift) - 1;
  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

// Members of a container that were appended together; `first` is the cell of the first.
struct PickleRun {
  uint64_t first = 0;  // cell
  uint32_t count = 0;
  uint32_t next = 0;  // index into runs_ of the next run plus one, or 0
  uint32_t last = 0;  // in a container's first run: index of its last further run plus one, or 0
  uint32_t keys = 0;  // of a dictionary: index into keys_
};

// Holds at most 2^32 - 1 containers, runs and texts, which a pickle below 4 GiB cannot exceed.
class PickleDocument {
 public:
  // Walks the members of a container. For a dictionary, key() belongs to value().
  class Cursor {
   public:
    bool done() const { return run_ == nullptr; }
    PickleValue value() const { return document_->cells_[run_->first + at_]; }
    PickleValue key() const;  // None for lists, tuples, sets
    void next();

   private:
    friend class PickleDocument;
    void skip_empty_runs();
    const PickleDocument* document_ = nullptr;
    const PickleRun* run_ = nullptr;
    uint32_t at_ = 0;
    bool keyed_ = false;
  };

  PickleValue root() const { return root_; }
  std::optional<bool> boolean(PickleValue value) const;
  std::optional<int64_t> integer(PickleValue value) const;  // integers of 64 bits; booleans as 0 and 1
  std::optional<double> real(PickleValue value) const;      // reals and integers
  // The bytes of a text or of bytes, the name of a callable ("module.name"), or a big integer's little-endian two's
  // complement; else empty. Text may be invalid UTF-8.
  std::string_view text(PickleValue value) const;
  size_t size(PickleValue value) const;     // members of a container; bytes of text and bytes; else 0
  Cursor members(PickleValue value) const;  // done at once if not a container
  // A number for a container, below container_count(), the same for all references to it.
  size_t container_number(PickleValue value) const { return value.index(); }
  size_t container_count() const { return containers_.size(); }

  // The value of a text, for find(), if the document holds it anywhere.
  std::optional<PickleValue> text_value(std::string_view text) const;
  // The value of the last entry of a dictionary with this key, compared by ==. O(entries).
  std::optional<PickleValue> find(PickleValue dict, PickleValue key) const;

  // --- for the reader ---
  static PickleValue make_boolean(bool value) { return PickleValue(PickleKind::boolean, value ? 1 : 0); }
  PickleValue make_integer(int64_t value);
  PickleValue make_real(double value);
  // `kind`: text, bytes, callable or big_integer. `text` must outlive the document unless `copied`.
  PickleValue make_text(PickleKind kind, std::string_view text, bool copied = false);
  PickleValue make_container(PickleKind kind);  // empty
  // The same container as another kind: the set made of a list.
  static PickleValue seen_as(PickleKind kind, PickleValue container) { return PickleValue(kind, container.index()); }
  // Appends `count` members to a list, tuple or set.
  void append(PickleValue container, const PickleValue* members, size_t count);
  // Appends `entries` entries to a dictionary: key, value, key, value, ...
  void append_entries(PickleValue dict, const PickleValue* keys_and_values, size_t entries);
  void set_root(PickleValue root) { root_ = root; }

 private:
  struct Keys {
    uint64_t first = 0;
    uint32_t count = 0;
  };
  struct SharedCells {
    uint64_t hash = 0, first = 0;
    uint32_t count = 0;
  };
  PickleRun& add_run(PickleValue container);
  uint64_t store_cells(const PickleValue* values, size_t count, size_t stride);
  uint64_t shared_cells(const PickleValue* members, size_t count);
  uint32_t shared_keys(const PickleValue* keys_and_values, size_t entries);
  bool cells_equal(uint64_t first, const PickleValue* values, size_t count, size_t stride) const;

  PickleValue root_;
  PickleStore<PickleValue> cells_;
  PickleStore<PickleRun> containers_;  // each with its first run
  PickleStore<PickleRun> runs_;        // further ones
  PickleStore<Keys> keys_;
  PickleStore<std::string_view> texts_;
  PickleStore<int64_t> integers_;  // of more than 60 bits
  PickleStore<double> reals_;
  std::deque<std::string> copies_;
  PickleTextIndex text_numbers_;
  std::vector<uint32_t> last_keys_;       // by hash: index of the latest keys with it plus one
  std::vector<SharedCells> last_shared_;  // by hash: the latest list with it
};

}  // namespace headroom
