// The values that templates compute with: the subset of Python's that is supported. Immutable except for namespaces.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/budget.h"

namespace headroom::jinja {

struct Text;
struct List;
class Dict;
struct Namespace;
struct Callable;
struct Loop;
using TextRef = std::shared_ptr<const Text>;
using ListRef = std::shared_ptr<const List>;
using DictRef = std::shared_ptr<const Dict>;

// In the order of Value's alternatives.
enum class Type { none, undefined, boolean, integer, real, text, list, dict, name_space, callable, loop };

// Lists and dicts nested deeper than this are refused, which bounds the recursion over a value.
inline constexpr int kMaxNesting = 64;

// Cheap to copy; copies share what they hold.
class Value {
 public:
  Value() = default;  // none
  explicit Value(bool value) : data_(value) {}
  explicit Value(int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(TextRef value) : data_(std::move(value)) {}
  explicit Value(ListRef value) : data_(std::move(value)) {}
  explicit Value(DictRef value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<Namespace> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<const Callable> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<Loop> value) : data_(std::move(value)) {}
  // `why`: what an error says when the value is used, e.g. "'x' is undefined".
  static Value undefined(TextRef why);

  Type type() const { return static_cast<Type>(data_.index()); }
  bool is(Type type) const { return this->type() == type; }
  // A bool counts as an integer.
  bool is_integer() const { return is(Type::integer) || is(Type::boolean); }
  bool is_number() const { return is_integer() || is(Type::real); }
  bool is_mapping() const { return is(Type::dict); }

  // Each only for values of its type; integer() also for a bool, number() for every number.
  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const;
  double number() const;
  const std::string& text() const;
  const TextRef& text_ref() const { return std::get<TextRef>(data_); }
  const List& list() const { return *std::get<ListRef>(data_); }
  const ListRef& list_ref() const { return std::get<ListRef>(data_); }
  const Dict& dict() const { return *std::get<DictRef>(data_); }
  Namespace& name_space() const { return *std::get<std::shared_ptr<Namespace>>(data_); }
  const Callable& callable() const { return *std::get<std::shared_ptr<const Callable>>(data_); }
  Loop& loop() const { return *std::get<std::shared_ptr<Loop>>(data_); }
  // What an undefined value says.
  std::string why() const;

  // Lists and dicts around the innermost value; 0 for others.
  int nesting() const;
  // Whether both are the same object (numbers and the like: never).
  bool same_object(const Value& other) const;

 private:
  struct Undefined {
    TextRef why;
  };
  std::variant<std::monostate, Undefined, bool, int64_t, double, TextRef, ListRef, DictRef, std::shared_ptr<Namespace>,
               std::shared_ptr<const Callable>, std::shared_ptr<Loop>>
      data_;
};

struct Text {
  std::string bytes;    // UTF-8
  bool markup = false;  // marked as safe HTML: what is added to it is escaped
  Charge charge;
};

enum class ListKind { list, tuple, range, generator, keys, values, items };

struct List {
  ListKind kind = ListKind::list;
  std::vector<Value> items;
  int nesting = 1;
  mutable bool consumed = false;  // a generator yields its items once
  Charge charge;
};

// Keys in the order of their insertion; 1, 1.0 and true are the same key.
class Dict {
 public:
  explicit Dict(Budget& budget) : charge_(budget, 128) {}
  // Adds or replaces. Throws Problem for keys that Python cannot hash, and for tuples.
  void set(const Value& key, const Value& value);
  void reserve(size_t entries) { entries_.reserve(entries); }
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }
  int nesting() const { return nesting_; }

 private:
  struct KeyLess {
    bool operator()(const Value& a, const Value& b) const;
  };
  size_t index_of(const Value& key) const;

  std::vector<std::pair<Value, Value>> entries_;
  std::map<Value, size_t, KeyLess> index_;  // empty while the dict is small
  int nesting_ = 1;
  Charge charge_;
};

struct Namespace {
  std::map<std::string, Value, std::less<>> members;
  Charge charge;
};

struct MacroDefinition;
struct Scope;

// A function: a global one, a method bound to `self`, or a macro with the scope of its definition.
struct Callable {
  std::string name;
  Value self;
  bool is_method = false;
  const MacroDefinition* macro = nullptr;
  Scope* scope = nullptr;
  Charge charge;
};

// Whether it can be a key: what Python can hash, as far as it is supported here.
bool is_key(const Value& value);
// Throws Problem for lists and dicts, which Python cannot look up in a dict.
void require_hashable(const Value& value);
// A total order of keys in which equal keys are equal.
bool key_less(const Value& a, const Value& b);

// All of these hold the value's bytes in the budget.
Value make_text(Budget& budget, std::string bytes, bool markup = false);
Value make_list(Budget& budget, ListKind kind, std::vector<Value> items);
Value make_undefined(Budget& budget, std::string why);
// A text outside any budget: a constant of the template.
Value constant_text(std::string bytes);

// Python's name of the type, for messages.
std::string_view type_name(const Value& value);

}  // namespace headroom::jinja
