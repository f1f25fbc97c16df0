// A listening TCP or Unix socket.
#pragma once

#include <cstdint>
#include <string>

#include "serve/http_server.h"

namespace headroom {

class HttpListener {
 public:
  // Throws Error(run) with the address when it is in use or not available. A socket file without a listener is
  // replaced.
  explicit HttpListener(const HttpAddress& address);
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  // Releases the descriptor; the caller must close it.
  int release();
  int family() const { return family_; }
  const std::string& url() const { return url_; }
  // Removes the socket file if it is still the one that this object created.
  void remove_path();

 private:
  void listen_on_host(const HttpAddress& address);
  void listen_on_path(const std::string& path);

  int descriptor_ = -1;
  int family_ = 0;
  std::string url_;
  std::string path_;
  uint64_t device_ = 0, inode_ = 0;
};

// The address of a connection's peer without the port; "unix" when it has none.
std::string http_peer_of(int descriptor);

}  // namespace headroom
