#include <jitsmith/jit/include_scan.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/virtual_path.hpp>

namespace jitsmith {
namespace {

constexpr char k_end = '\0';  // the text itself has none: check_bytes()
constexpr std::string_view k_blanks = " \t\v\f";

bool is_blank(char c) {
  return k_blanks.find(c) != std::string_view::npos;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_identifier(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool includes(std::string_view directive) {
  constexpr std::array<std::string_view, 4> k_names{"include", "include_next", "import", "embed"};
  return std::ranges::find(k_names, directive) != k_names.end();
}

// A pass over the text as a compiler's first phases see it: line splices vanish wherever they are, but in raw
// strings; a comment is a blank.
class IncludeScan {
 public:
  explicit IncludeScan(const SourceFile& file) : file_(file), text_(file.text) {}

  std::vector<std::string> paths() {
    check_bytes();
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
    bool line_start = true;
    while (skip_space(), peek() != k_end) {
      const std::size_t begin = at_;
      if (peek() == '\n') {
        next();
        line_start = true;
        continue;
      }
      if (hash() && line_start)
        directive(begin);
      else if (at_ == begin)
        token();
      line_start = false;
    }
    return std::move(paths_);
  }

 private:
  // Reading.

  void skip_splices() {
    if (at_ >= text_.size() || (text_[at_] != '\\' && text_[at_] != '\r')) return;  // nearly always
    while (text_.substr(at_).starts_with("\\\n") || text_.substr(at_).starts_with("\\\r\n"))
      at_ += text_[at_ + 1] == '\n' ? 2 : 3;
    if (text_.substr(at_).starts_with("\r\n")) ++at_;
  }

  // The character here and the next ones, without the splices between them.
  char peek() {
    skip_splices();
    return at_ < text_.size() ? text_[at_] : k_end;
  }
  char next() {
    const char c = peek();
    if (c != k_end) ++at_;
    return c;
  }
  bool take(std::string_view expected) {
    const std::size_t begin = at_;
    for (const char c : expected)
      if (next() != c) {
        at_ = begin;
        return false;
      }
    return true;
  }

  bool hash() {
    const char c = peek();
    return (c == '#' && take("#")) || (c == '%' && take("%:")) || (c == '\?' && take("\?\?="));
  }

  // Blanks and comments, not the ends of lines outside comments.
  void skip_space() {
    while (true) {
      if (is_blank(peek())) {
        next();
      } else if (peek() != '/') {
        return;
      } else if (take("//")) {
        while (peek() != '\n' && peek() != k_end) next();
      } else if (take("/*")) {
        while (peek() != k_end && !take("*/")) next();
      } else {
        return;
      }
    }
  }

  std::string identifier() {
    std::string name;
    while (is_identifier(peek())) name += next();
    return name;
  }

  // One token that begins no directive. All that matters is where it ends, when it could hide a comment.
  void token() {
    const std::size_t begin = at_;
    const char c = peek();
    if (c == '"' || c == '\'') {
      literal();
    } else if (is_digit(c)) {
      number();
    } else if (is_identifier(c)) {
      const std::string name = identifier();
      if (name.starts_with("__has_include") || name.starts_with("__has_embed"))
        refuse(begin, name, "asks the disk which files there are");
      const bool raw = name == "R" || name == "LR" || name == "uR" || name == "UR" || name == "u8R";
      if (raw && peek() == '"') raw_string();
    } else if (next() == '.' && is_digit(peek())) {
      number();
    }
  }

  void number() {  // 1'000.5e-3f
    while (true) {
      const char c = peek();
      if (!is_identifier(c) && c != '.' && c != '\'') return;
      const std::size_t begin = at_;
      next();
      if (c == '\'' && !is_identifier(peek())) {
        at_ = begin;
        return;
      }
    }
  }

  void literal() {
    const std::size_t begin = at_;
    const char quote = next();
    while (peek() != quote) {
      if (peek() == '\n' || peek() == k_end) {
        // Compilers agree on an odd quote only as long as no comment begins after it.
        if (text_.substr(begin, at_ - begin).find("/*") != std::string_view::npos)
          refuse(begin, "/* after a quote that is not closed", "may or may not begin a comment");
        return;
      }
      if (next() == '\\' && peek() != '\n') next();
    }
    next();
  }

  void raw_string() {
    ++at_;
    const std::size_t open = std::min(text_.find('(', at_), text_.size());
    const std::string close = fmt::format("){}\"", text_.substr(at_, open - at_));
    const std::size_t end = text_.find(close, open);
    if (end == std::string_view::npos) refuse(at_, "a raw string", "does not end");
    // Not every compiler reads the skipped part of an #if token by token.
    for (std::size_t line = text_.find('\n', at_); line < end; line = text_.find('\n', at_)) {
      at_ = line + 1;
      skip_space();
      const std::size_t begin = at_;
      if (begin < end && hash() && (skip_space(), includes(identifier())))
        refuse(begin, line_from(begin), "lies in a raw string");
      at_ = line + 1;
    }
    at_ = end + close.size();
  }

  // After the '#', which is at `begin`.
  void directive(std::size_t begin) {
    skip_space();
    const std::string name = identifier();
    if (!includes(name)) return;
    const auto refuse_it = [&] { refuse(begin, line_from(begin), "names no known file"); };
    skip_space();
    if (name != "include" || next() != '"') refuse_it();
    std::string path;
    while (peek() != '"' && peek() != '\n' && peek() != k_end) path += next();
    if (next() != '"' || !is_plain_relative(path)) refuse_it();
    skip_space();
    if (peek() != '\n' && peek() != k_end) refuse_it();
    paths_.push_back(std::move(path));
  }

  // Refusing.

  // What some compilers take for a line end, the end of the text or a splice, and others do not.
  void check_bytes() {
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (const char c = text_[i]; c != '\0' && c != '\?' && c != '\r' && c != '\\') continue;
      const std::string_view rest = text_.substr(i);
      if (rest[0] == '\0') refuse(i, "a NUL byte", "may end the text");
      if (rest.starts_with("\?\?/")) refuse(i, "\?\?/", "may be a backslash");
      if (rest[0] == '\r' && !rest.starts_with("\r\n"))
        refuse(i, "a carriage return without a line feed", "may end the line");
      if (rest[0] != '\\') continue;
      const std::size_t after = rest.find_first_not_of(k_blanks, 1);
      if (after != 1 && after != std::string_view::npos && (rest[after] == '\n' || rest[after] == '\r'))
        refuse(i, "\\ before blanks at the end of a line", "may join it with the next");
    }
  }

  // The logical line from `begin`, comments as one blank; at most as much as fits a message.
  std::string line_from(std::size_t begin) {
    constexpr std::size_t k_most = 80;
    at_ = begin;
    std::string line;
    while (peek() != '\n' && peek() != k_end && line.size() < k_most) {
      const std::size_t before = at_;
      skip_space();
      if (at_ == before)
        line += next();
      else if (peek() != '\n' && peek() != k_end && line != "#")
        line += ' ';
    }
    return line;
  }

  [[noreturn]] void refuse(std::size_t at, std::string_view found, std::string_view why) const {
    const std::string_view before = text_.substr(0, at);
    throw CompileError(
        fmt::format(
            "{}:{}: found '{}', which {}; a template may only #include \"path\" of its own headers and the "
            "built-in ones, by their plain relative paths",
            file_.path, 1 + std::ranges::count(before, '\n'), found, why),
        {});
  }

  const SourceFile& file_;
  const std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> paths_;
};

}  // namespace

std::vector<std::string> included_paths(const SourceFile& file) {
  return IncludeScan(file).paths();
}

}  // namespace jitsmith
