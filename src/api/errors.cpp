#include "headroom/engine.h"

namespace headroom::api {

struct Error::Impl {
  ErrorKind kind;
  std::string remedy;
};

struct Refusal::Impl {
  std::int64_t budget_bytes, minimum_bytes;
  std::vector<Change> changes;
};

Error::Error(ErrorKind kind, const std::string& message, std::string remedy)
    : std::runtime_error(message), impl_(std::make_shared<const Impl>(Impl{kind, std::move(remedy)})) {}
ErrorKind Error::kind() const noexcept { return impl_->kind; }
const std::string& Error::remedy() const noexcept { return impl_->remedy; }

Refusal::Refusal(const std::string& message, std::string remedy, std::int64_t budget_bytes, std::int64_t minimum_bytes,
                 std::vector<Change> changes)
    : Error(ErrorKind::does_not_fit, message, std::move(remedy)),
      impl_(std::make_shared<const Impl>(Impl{budget_bytes, minimum_bytes, std::move(changes)})) {}
std::int64_t Refusal::budget_bytes() const noexcept { return impl_->budget_bytes; }
std::int64_t Refusal::minimum_bytes() const noexcept { return impl_->minimum_bytes; }
const std::vector<Change>& Refusal::changes() const noexcept { return impl_->changes; }

}  // namespace headroom::api
