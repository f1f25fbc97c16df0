#include "doctor/messages/line_splitter.h"

#include <cstring>

namespace headroom::doctor {

void LineSplitter::feed(std::string_view chunk) {
  while (!chunk.empty()) {
    const void* end = std::memchr(chunk.data(), '\n', chunk.size());
    if (end == nullptr) {
      // Appends in pieces, so that the buffer never exceeds two parts whatever the line's length.
      while (!chunk.empty()) {
        const size_t take = std::min(chunk.size(), kLongest);
        pending_.append(chunk.substr(0, take));
        chunk.remove_prefix(take);
        emit_parts();
      }
      return;
    }
    const size_t length = static_cast<size_t>(static_cast<const char*>(end) - chunk.data());
    if (pending_.empty() && length <= kLongest) {
      receiver_({chunk.substr(0, length), number_, 0, false});
    } else {
      for (size_t done = 0; done < length;) {
        const size_t take = std::min(length - done, kLongest);
        pending_.append(chunk.substr(done, take));
        done += take;
        emit_parts();
      }
      receiver_({pending_, number_, repeated_, false});
      pending_.clear();
      repeated_ = 0;
    }
    ++number_;
    chunk.remove_prefix(length + 1);
  }
}

void LineSplitter::emit_parts() {
  while (pending_.size() > kLongest) {
    receiver_({std::string_view(pending_).substr(0, kLongest), number_, repeated_, true});
    pending_.erase(0, kLongest - kOverlap);
    repeated_ = kOverlap;
  }
}

void LineSplitter::finish() {
  if (pending_.size() > repeated_) receiver_({pending_, number_, repeated_, false});
  pending_.clear();
  repeated_ = 0;
}

}  // namespace headroom::doctor
