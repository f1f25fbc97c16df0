#include "serve/call_finder.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

// Offset of `mark`, or of a possible start of it at the end; the text's size if there is neither.
size_t find_mark(std::string_view text, std::string_view mark) {
  for (size_t at = text.find(mark[0]); at != std::string_view::npos; at = text.find(mark[0], at + 1)) {
    const std::string_view rest = text.substr(at, mark.size());
    if (rest == mark.substr(0, rest.size())) return at;
  }
  return text.size();
}

}  // namespace

void CallFinder::add_text(size_t bytes) {
  if (bytes == 0) return;
  said_ = true;
  behind_call_ = false;
  if (found_.empty() || found_.back().call) found_.emplace_back();
  found_.back().text += held_.substr(0, bytes);
  held_.erase(0, bytes);
}

void CallFinder::add_call(std::optional<ToolCall> call) {
  if (!call) return;
  call->index = calls_ - 1;
  said_ = behind_call_ = true;
  if (!call->begins() && !found_.empty() && found_.back().call)
    found_.back().call->arguments += call->arguments;
  else
    found_.push_back({{}, std::move(call)});
}

void CallFinder::begin_head(size_t object, bool marked) {
  place_ = Place::head;
  marked_ = marked;
  object_ = read_ = object;
  call_.emplace(tools_, id_ + std::to_string(calls_));
}

bool CallFinder::read_words() {
  size_t first = held_.find_first_not_of(kSpaces);
  if (first == std::string::npos) return false;
  if (behind_call_) held_.erase(0, std::exchange(first, 0));
  if (!said_ && held_[first] == '{') {
    begin_head(first, false);
    return true;
  }
  const size_t mark = find_mark(held_, kCallOpen);
  const size_t words = mark == 0 ? std::string::npos : held_.find_last_not_of(kSpaces, mark - 1);
  const size_t certain = words == std::string::npos ? 0 : words + 1;
  add_text(certain);
  if (held_.size() < mark - certain + kCallOpen.size()) return false;
  begin_head(mark - certain + kCallOpen.size(), true);
  return true;
}

// The object is not a call, or one with another order of members, which is then complete.
void CallFinder::end_head() {
  std::string content;
  const std::string object = held_.substr(object_, read_ - object_);
  std::vector<ToolCall> calls = written_calls(tools_, object, id_, content);
  if (calls.empty()) {
    place_ = Place::words;
    return add_text(std::max<size_t>(object_, 1));  // do not look for a call here again
  }
  calls[0].id = id_ + std::to_string(calls_++);
  add_call(std::move(calls[0]));
  held_.erase(0, read_);
  place_ = marked_ ? Place::behind : Place::words;
}

bool CallFinder::read_head() {
  const auto is_open = [&] { return !call_->certain() && !call_->failed() && read_ - object_ < kMostHead; };
  while (read_ < held_.size() && is_open()) call_->read(held_[read_++]);
  if (is_open()) return false;
  if (!call_->certain()) {
    end_head();
    return true;
  }
  ++calls_;
  add_call(call_->take());
  held_.erase(0, read_);
  place_ = Place::arguments;
  return true;
}

bool CallFinder::read_arguments() {
  size_t used = 0;
  while (used < held_.size() && !call_->complete()) call_->read(held_[used++]);
  held_.erase(0, used);
  add_call(call_->take());
  if (!call_->complete()) return false;
  place_ = Place::behind;
  return true;
}

// Skips to the mark that ends the call, or to one that starts another; without marks to the end of the object.
bool CallFinder::read_behind() {
  size_t used = 0;
  if (!marked_) {
    while (used < held_.size() && !call_->closed()) call_->read(held_[used++]);
    held_.erase(0, used);
    if (call_->closed()) place_ = Place::words;
    return call_->closed();
  }
  const size_t close = find_mark(held_, kCallClose), open = find_mark(held_, kCallOpen);
  held_.erase(0, std::min(close, open));
  const bool closes = held_.starts_with(kCallClose);
  if (!closes && !held_.starts_with(kCallOpen)) return false;
  if (closes) held_.erase(0, kCallClose.size());
  place_ = Place::words;
  return true;
}

std::vector<FoundPart> CallFinder::push(std::string_view text) {
  held_ += text;
  for (bool more = true; more && !held_.empty();) switch (place_) {
      case Place::words:
        more = read_words();
        break;
      case Place::head:
        more = read_head();
        break;
      case Place::arguments:
        more = read_arguments();
        break;
      case Place::behind:
        more = read_behind();
        break;
    }
  return std::exchange(found_, {});
}

std::vector<FoundPart> CallFinder::finish() {
  const bool is_text = place_ == Place::words || place_ == Place::head;
  const bool is_space = held_.find_first_not_of(kSpaces) == std::string::npos;
  if (is_text && !(is_space && behind_call_)) add_text(held_.size());
  return std::exchange(found_, {});
}

}  // namespace headroom
