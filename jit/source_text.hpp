// SourceText: an immutable text and its digest, cheap to copy: a template's text and its headers go into
// every key that an engine makes, and are copied and hashed once.
#pragma once

#include <compare>
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <jitsmith/cache/digest.hpp>

namespace jitsmith {

// Thread safe, as any immutable value is. To move one is to copy it, so that none is ever empty-handed.
class SourceText {
 public:
  SourceText() : SourceText(std::string()) {}

  // Of a string, a view or a literal; implicit, for it is that text.
  template <class Text>
  requires std::convertible_to<Text, std::string_view> &&
      (!std::same_as<std::remove_cvref_t<Text>, SourceText>)SourceText(Text&& text)
      : text_(std::make_shared<const std::string>(std::forward<Text>(text))), digest_(digest_of(*text_)) {}

  SourceText(const SourceText&) = default;
  SourceText& operator=(const SourceText&) = default;

  const std::string& str() const { return *text_; }
  operator const std::string&() const { return *text_; }
  operator std::string_view() const { return *text_; }
  const Digest& digest() const { return digest_; }

  // By digest first, and by text where those are equal: some order, fast, and no collision makes two texts
  // one.
  friend std::strong_ordering operator<=>(const SourceText& a, const SourceText& b) {
    if (const auto order = a.digest_ <=> b.digest_; order != 0 || a.text_ == b.text_) return order;
    return *a.text_ <=> *b.text_;
  }
  friend bool operator==(const SourceText& a, const SourceText& b) { return (a <=> b) == 0; }

 private:
  std::shared_ptr<const std::string> text_;
  Digest digest_;
};

}  // namespace jitsmith
