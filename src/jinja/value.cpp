#include "jinja/value.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "jinja/loop.h"
#include "jinja/problem.h"

namespace headroom::jinja {
namespace {

constexpr size_t kSmallDict = 8;

// 0 none, 1 numbers, 2 texts.
int key_rank(const Value& key) {
  if (key.is(Type::none)) return 0;
  return key.is_number() ? 1 : 2;
}

int checked_nesting(int inner) {
  if (inner >= kMaxNesting) exceed(fmt::format("values nested deeper than {} levels", kMaxNesting));
  return inner + 1;
}

}  // namespace

Value Value::undefined(TextRef why) {
  Value value;
  value.data_ = Undefined{std::move(why)};
  return value;
}

int64_t Value::integer() const { return is(Type::boolean) ? int64_t{boolean()} : std::get<int64_t>(data_); }

double Value::number() const { return is(Type::real) ? std::get<double>(data_) : static_cast<double>(integer()); }

const std::string& Value::text() const { return text_ref()->bytes; }

std::string Value::why() const { return std::get<Undefined>(data_).why->bytes; }

int Value::nesting() const {
  switch (type()) {
    case Type::list:
      return list().nesting;
    case Type::dict:
      return dict().nesting();
    case Type::callable:
      return callable().self.nesting() + 1;
    case Type::loop:
      return loop().nesting;
    default:
      return 0;
  }
}

bool Value::same_object(const Value& other) const {
  if (type() != other.type()) return false;
  switch (type()) {
    case Type::none:
      return true;
    case Type::text:
      return text_ref() == other.text_ref();
    case Type::list:
      return list_ref() == other.list_ref();
    case Type::dict:
      return &dict() == &other.dict();
    case Type::name_space:
      return &name_space() == &other.name_space();
    case Type::callable:
      return &callable() == &other.callable();
    case Type::loop:
      return &loop() == &other.loop();
    default:
      return false;
  }
}

bool is_key(const Value& value) {
  return value.is(Type::none) || value.is(Type::text) || (value.is_number() && !std::isnan(value.number()));
}

void require_hashable(const Value& value) {
  const bool unhashable = value.is(Type::dict) || (value.is(Type::list) && value.list().kind == ListKind::list);
  if (unhashable) fail(fmt::format("a {} is not a key of a dict", type_name(value)));
}

bool key_less(const Value& a, const Value& b) {
  const int rank_a = key_rank(a), rank_b = key_rank(b);
  if (rank_a != rank_b) return rank_a < rank_b;
  if (rank_a == 0) return false;
  if (rank_a == 2) return a.text() < b.text();
  if (a.is_integer() && b.is_integer()) return a.integer() < b.integer();
  return a.number() < b.number();
}

bool Dict::KeyLess::operator()(const Value& a, const Value& b) const { return key_less(a, b); }

size_t Dict::index_of(const Value& key) const {
  if (!index_.empty()) {
    const auto found = index_.find(key);
    return found == index_.end() ? entries_.size() : found->second;
  }
  const auto same = [&key](const auto& entry) { return !key_less(key, entry.first) && !key_less(entry.first, key); };
  return static_cast<size_t>(std::find_if(entries_.begin(), entries_.end(), same) - entries_.begin());
}

void Dict::set(const Value& key, const Value& value) {
  require_hashable(key);
  if (!is_key(key)) refuse(fmt::format("a {} as the key of a dict", type_name(key)));
  nesting_ = std::max(nesting_, checked_nesting(value.nesting()));
  const size_t at = index_of(key);
  if (at < entries_.size()) {
    entries_[at].second = value;
    return;
  }
  charge_.add(2 * static_cast<int64_t>(sizeof(entries_[0])) + (entries_.size() < kSmallDict ? 0 : 96));
  entries_.emplace_back(key, value);
  if (entries_.size() <= kSmallDict) return;
  for (size_t i = index_.size(); i < entries_.size(); ++i) index_.emplace(entries_[i].first, i);
}

const Value* Dict::find(const Value& key) const {
  if (!is_key(key)) return nullptr;
  const size_t at = index_of(key);
  return at < entries_.size() ? &entries_[at].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (!index_.empty()) return find(constant_text(std::string(key)));
  for (const auto& [name, value] : entries_)
    if (name.is(Type::text) && name.text() == key) return &value;
  return nullptr;
}

Value make_text(Budget& budget, std::string bytes, bool markup) {
  budget.check_text(bytes.size());
  auto text = std::make_shared<Text>();
  const size_t heap = bytes.size() < 16 ? 0 : bytes.size();
  text->charge = Charge(budget, static_cast<int64_t>(sizeof(Text) + 32 + heap));
  bytes.shrink_to_fit();
  text->bytes = std::move(bytes);
  text->markup = markup;
  return Value(TextRef(std::move(text)));
}

Value constant_text(std::string bytes) {
  auto text = std::make_shared<Text>();
  text->bytes = std::move(bytes);
  return Value(TextRef(std::move(text)));
}

Value make_list(Budget& budget, ListKind kind, std::vector<Value> items) {
  auto list = std::make_shared<List>();
  list->kind = kind;
  list->charge = Charge(budget, static_cast<int64_t>(sizeof(List) + 32 + items.capacity() * sizeof(Value)));
  budget.step(static_cast<int64_t>(items.size() / 4));
  int inner = 0;
  for (const Value& item : items) inner = std::max(inner, item.nesting());
  list->nesting = checked_nesting(inner);
  list->items = std::move(items);
  return Value(ListRef(std::move(list)));
}

Value make_undefined(Budget& budget, std::string why) {
  return Value::undefined(make_text(budget, std::move(why)).text_ref());
}

std::string_view type_name(const Value& value) {
  switch (value.type()) {
    case Type::none:
      return "NoneType";
    case Type::undefined:
      return "Undefined";
    case Type::boolean:
      return "bool";
    case Type::integer:
      return "int";
    case Type::real:
      return "float";
    case Type::text:
      return "str";
    case Type::list: {
      constexpr std::string_view names[] = {"list",      "tuple",       "range",     "generator",
                                            "dict_keys", "dict_values", "dict_items"};
      return names[static_cast<int>(value.list().kind)];
    }
    case Type::dict:
      return "dict";
    case Type::name_space:
      return "Namespace";
    case Type::callable:
      return value.callable().macro != nullptr ? "Macro" : "function";
    case Type::loop:
      return "LoopContext";
  }
  return "";
}

}  // namespace headroom::jinja
