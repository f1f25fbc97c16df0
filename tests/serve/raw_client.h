// A client that sends and reads raw bytes. Deadlines only limit the waiting.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

namespace headroom {

class RawClient {
 public:
  explicit RawClient(int port) : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    connected_ = ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), connected_(other.connected_), got_(std::move(other.got_)) {}

  bool connected() const { return connected_; }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close();
  }
  // Returns false when the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Everything up to and including `end`; if it never comes, everything until the server closes.
  std::string read_until(std::string_view end) {
    size_t at;
    while ((at = got_.find(end)) == std::string::npos)
      if (!read_more()) return std::exchange(got_, {});
    std::string text = got_.substr(0, at + end.size());
    got_.erase(0, at + end.size());
    return text;
  }
  // Everything until the server closes.
  std::string read_all() {
    while (read_more()) {
    }
    return std::exchange(got_, {});
  }
  bool is_closed() {
    while (read_more()) {
    }
    return at_end_;
  }

 private:
  bool read_more() {
    pollfd look{descriptor_, POLLIN, 0};
    if (::poll(&look, 1, 20000) <= 0) return false;
    char bytes[65536];
    const ssize_t count = ::recv(descriptor_, bytes, sizeof(bytes), 0);
    at_end_ = count <= 0;
    if (count > 0) got_.append(bytes, static_cast<size_t>(count));
    return count > 0;
  }

  int descriptor_;
  bool connected_ = false;
  bool at_end_ = false;
  std::string got_;
};

}  // namespace headroom
