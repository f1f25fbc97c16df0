// What a recogniser works on: the squeezed text around its trigger, and the message that it fills.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "doctor/messages/message.h"
#include "doctor/messages/quantity.h"
#include "doctor/messages/squeezed.h"

namespace headroom::doctor {

// A byte field of Message, and its name in Figure.
struct ByteField {
  const char* name;
  std::optional<int64_t> Message::*member;
};
inline constexpr ByteField kRequested{"requested", &Message::requested_bytes};
inline constexpr ByteField kCapacity{"capacity", &Message::capacity_bytes};
inline constexpr ByteField kAllocated{"allocated", &Message::allocated_bytes};
inline constexpr ByteField kReserved{"reserved", &Message::reserved_bytes};
inline constexpr ByteField kUnallocated{"reserved_unallocated", &Message::reserved_unallocated_bytes};
inline constexpr ByteField kFree{"free", &Message::free_bytes};
inline constexpr ByteField kProcess{"process", &Message::process_bytes};
inline constexpr ByteField kProcessLimit{"process_limit", &Message::process_limit_bytes};
inline constexpr ByteField kPrivatePool{"private_pool", &Message::private_pool_bytes};
inline constexpr ByteField kOtherAllocations{"other_allocations", &Message::other_allocations_bytes};
inline constexpr ByteField kKvWanted{"kv_wanted", &Message::kv_bytes_wanted};
inline constexpr ByteField kKvAvailable{"kv_available", &Message::kv_bytes_available};

// Positions are offsets in the squeezed text. Patterns are in lower case, without white space.
class Reading {
 public:
  // `text` is `original` squeezed.
  Reading(std::string_view original, const Squeezed& text, size_t trigger, size_t trigger_length, Message& message)
      : message(message),
        original_(original),
        text_(text),
        trigger_(trigger),
        body_(trigger + trigger_length),
        begin_(trigger),
        end_(body_) {}

  Message& message;

  size_t trigger() const { return trigger_; }
  size_t body() const { return body_; }  // byte after the trigger
  const Squeezed& text() const { return text_; }
  size_t size() const { return text_.size(); }

  bool at(size_t position, std::string_view pattern) const {
    return text_.view().substr(std::min(position, size()), pattern.size()) == pattern;
  }
  // Whether the text ends with `pattern` at `position`.
  bool before(size_t position, std::string_view pattern) const {
    return position >= pattern.size() && at(position - pattern.size(), pattern);
  }
  // Whether `pattern` occurs within the `reach` bytes before `position`.
  bool near_before(size_t position, std::string_view pattern, size_t reach) const;
  // The end of the first `pattern` that starts in [from, from + reach]. The message is extended to it.
  std::optional<size_t> after(std::string_view pattern, size_t from, size_t reach);
  // Like after(), without extending the message.
  bool follows(std::string_view pattern, size_t from, size_t reach) const;

  // Reads the amount at `position` into the field, unless the field is set. Returns its end; nullopt when there is
  // none.
  std::optional<size_t> amount(size_t position, uint32_t units, const ByteField& field);
  // Reads the amount that ends at `position` ("6.64 GiB" before "already allocated").
  bool amount_before(size_t position, size_t not_before, uint32_t units, const ByteField& field);
  // A whole number at `position`. The message is extended to it.
  std::optional<int64_t> number(size_t position, bool may_end = false);
  // Reads a device index (at most 4095) at `position`, unless the device is known.
  bool device(size_t position, bool may_end = false);

  void hint(std::string_view name);
  void identify(std::string_view framework, std::string_view format);
  void phase(std::string_view name, std::string_view evidence);

  // Extends the message's end to `end` / its start to `begin`.
  void extend(size_t position) { end_ = std::max(end_, std::min(position, size())); }
  void begin_at(size_t position) { begin_ = std::min(begin_, position); }
  size_t begin() const { return begin_; }
  size_t end() const { return end_; }

 private:
  void record(const Quantity& quantity, size_t start, const ByteField& field);

  std::string_view original_;
  const Squeezed& text_;
  size_t trigger_, body_;
  size_t begin_, end_;
};

// A kind of message. When `trigger` occurs, `parse` is called: it fills the message and returns true, or returns false.
// Then what it set is dropped and the next row is tried.
struct Recogniser {
  std::string_view name;
  std::string_view trigger;  // at least WordScan::kShortest bytes
  bool (*parse)(Reading&);
};

}  // namespace headroom::doctor
