#include "jinja/problem.h"

#include <fmt/format.h>

#include <utility>

namespace headroom::jinja {

void fail(std::string what) { throw Problem{Problem::Kind::failed, std::move(what)}; }

void refuse(std::string_view name) {
  throw Problem{Problem::Kind::unsupported, fmt::format("'{}' is not supported", name)};
}

void exceed(std::string what) { throw Problem{Problem::Kind::limit, std::move(what)}; }

}  // namespace headroom::jinja
