#include "serve/http_listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace headroom {
namespace {

constexpr int kBacklog = 512;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

[[noreturn]] void refuse_listening(const std::string& where, int error, const char* remedy) {
  throw Error(ErrorKind::run, fmt::format("cannot listen on {}: {}", where, std::strerror(error)), remedy);
}

std::string host_in_url(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

int port_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  const uint16_t port = address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                                      : reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return ntohs(port);
}

sockaddr_un address_of_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    throw Error(ErrorKind::usage,
                fmt::format("the socket path {} has {} bytes; the system takes {}", path, path.size(),
                            sizeof(address.sun_path) - 1),
                "choose a shorter path");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Removes a socket file without a listener.
void clear_path(const std::string& path, const sockaddr_un& address) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return;
  if (!S_ISSOCK(facts.st_mode)) refuse_listening(path, EEXIST, "a file exists there; give another path with --uds");
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int connected = ::connect(probe.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (connected == 0 || errno != ECONNREFUSED)
    refuse_listening(path, EADDRINUSE, "a server answers there; stop it, or give another path with --uds");
  ::unlink(path.c_str());
}

}  // namespace

HttpListener::HttpListener(const HttpAddress& address) {
  if (address.unix_path.empty()) {
    listen_on_host(address);
  } else {
    listen_on_path(address.unix_path);
  }
}

HttpListener::~HttpListener() {
  if (descriptor_ >= 0) ::close(descriptor_);
  remove_path();
}

void HttpListener::listen_on_host(const HttpAddress& address) {
  const std::string where = fmt::format("{}, port {}", address.host, address.port);
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  wish.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wish, &found))
    throw Error(ErrorKind::run, fmt::format("cannot listen on {}: {}", where, ::gai_strerror(error)),
                "name an address of this machine with --host: 127.0.0.1, 0.0.0.0 or ::1");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  Descriptor made(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(made.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (made.number() < 0 || ::bind(made.number(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(made.number(), kBacklog) != 0) {
    const int error = errno;
    refuse_listening(where, error,
                     error == EADDRINUSE
                         ? "stop the program that listens there, or choose another --port (0: a free one)"
                         : "choose another --host or --port");
  }
  family_ = found->ai_family;
  url_ = fmt::format("http://{}:{}", host_in_url(address.host), port_of(made.number()));
  descriptor_ = made.release();
}

void HttpListener::listen_on_path(const std::string& path) {
  const sockaddr_un address = address_of_path(path);
  clear_path(path, address);
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Before bind(), which gives the file the socket's mode, so that others can never open it.
  if (made.number() < 0 || ::fchmod(made.number(), 0600) != 0 ||
      ::bind(made.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    refuse_listening(path, errno, "name a path in a folder that can be written with --uds");
  path_ = path;
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) == 0) {
    device_ = facts.st_dev;
    inode_ = facts.st_ino;
  }
  if (::listen(made.number(), kBacklog) != 0) {
    const int error = errno;
    remove_path();
    refuse_listening(path, error, "name another path with --uds");
  }
  family_ = AF_UNIX;
  url_ = "unix:" + path;
  descriptor_ = made.release();
}

int HttpListener::release() { return std::exchange(descriptor_, -1); }

void HttpListener::remove_path() {
  struct stat facts {};
  if (!path_.empty() && ::lstat(path_.c_str(), &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_)
    ::unlink(path_.c_str());
  path_.clear();
}

std::string http_peer_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET)
    return ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof(text));
  if (address.ss_family == AF_INET6)
    return ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof(text));
  return "unix";
}

}  // namespace headroom
