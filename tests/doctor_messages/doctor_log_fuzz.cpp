// Any bytes as a log: no crash, bounded answers, and the same answer however the bytes are cut.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "doctor/messages/log_scanner.h"

using headroom::doctor::LogReport;
using headroom::doctor::LogScanner;
using headroom::doctor::Message;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

LogReport scan(std::string_view bytes, size_t piece) {
  LogScanner scanner;
  for (size_t at = 0; at < bytes.size(); at += piece) scanner.feed(bytes.substr(at, piece));
  return scanner.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const LogReport whole = scan(bytes, size + 1);
  require(whole.messages.size() <= LogScanner::kMessages);
  for (const Message& message : whole.messages) {
    require(!message.framework.empty() && !message.format.empty() && message.line >= 1);
    require(message.text.size() <= 3 * 4096 && message.frames.size() <= 64);
    for (const auto& field :
         {message.requested_bytes, message.capacity_bytes, message.allocated_bytes, message.reserved_bytes,
          message.reserved_unallocated_bytes, message.free_bytes, message.process_bytes, message.process_limit_bytes}) {
      require(!field || *field >= 0);
    }
  }
  const LogReport parts = scan(bytes, size == 0 ? 1 : 1 + data[0] % 17);
  require(parts.messages.size() == whole.messages.size() && parts.lines == whole.lines);
  for (size_t i = 0; i < whole.messages.size(); ++i) {
    require(parts.messages[i].text == whole.messages[i].text && parts.messages[i].line == whole.messages[i].line);
  }
  return 0;
}
