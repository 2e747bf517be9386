#include <jitsmith/tools/npy.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/whole_file.hpp>
#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

static_assert(std::endian::native == std::endian::little, "array bytes go to and from files as they are");

constexpr std::string_view k_magic = "\x93NUMPY";
constexpr std::size_t k_max_dictionary_bytes = 10'000;  // NumPy's own limit
constexpr std::size_t k_alignment = 64;

struct Dtype {
  std::string_view descr;
  ElementType type;
};

// The first of a type is the one to write.
constexpr std::array k_dtypes{Dtype{"<u2", ElementType::bf16}, Dtype{"<f4", ElementType::f32},
                              Dtype{"|u1", ElementType::u8},   Dtype{"<i4", ElementType::i32},
                              Dtype{"<i8", ElementType::i64},  Dtype{"|b1", ElementType::u8}};

// For a message: on one line and short, whatever the file has.
std::string shown(std::string_view text) {
  return fmt::format("{:?}", text.substr(0, 20));
}

ElementType element_type_of(std::string_view descr) {
  for (const Dtype& dtype : k_dtypes)
    if (dtype.descr == descr) return dtype.type;
  std::string_view advice =
      "convert with .astype to float32, uint8, int32, int64 or bool, or give the bits of bf16 as uint16";
  if (descr.starts_with('>')) advice = "it is big-endian; convert with .astype(a.dtype.newbyteorder('<'))";
  // How NumPy saves the types of the ml_dtypes package.
  if (descr.ends_with("V2")) advice = "give its bits with .view(numpy.uint16)";
  if (descr.ends_with("V1")) advice = "give its bits with .view(numpy.uint8)";
  throw InvalidRequest(fmt::format("its dtype {} is not accepted: {}", shown(descr), advice));
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Reads the one Python literal of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class DictionaryParser {
 public:
  explicit DictionaryParser(std::string_view text) : rest_(text) {}

  Header parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::int64_t>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr) {
        if (peek() == '[')
          throw InvalidRequest("the dtype is structured; save each of its fields as an array of its own");
        descr = string();
      } else if (key == "fortran_order" && !fortran_order) {
        fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        throw InvalidRequest(fmt::format(
            "the header's key {} is unknown or there twice; it has descr, fortran_order and shape",
            shown(key)));
      }
      if (!accept(',') && peek() != '}') fail();
    }
    if (peek() != '\0' || !rest_.empty()) fail();
    if (!descr || !fortran_order || !shape)
      throw InvalidRequest("the header lacks one of descr, fortran_order and shape");
    return {std::move(*descr), *fortran_order, std::move(*shape)};
  }

 private:
  [[noreturn]] void fail() const {
    throw InvalidRequest(fmt::format("the header is malformed at {}; save it with numpy.save", shown(rest_)));
  }

  // The next character that is no space, or NUL at the end.
  char peek() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }

  bool accept(char c) {
    if (peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail();
  }

  bool accept_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail();
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail();
    const std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    peek();
    if (accept_word("True")) return true;
    if (!accept_word("False")) fail();
    return false;
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      extents.push_back(extent());
      const bool comma = accept(',');
      if (!comma && (peek() != ')' || extents.size() == 1)) fail();  // in Python (3) is no tuple, (3,) is
    }
    return extents;
  }

  std::int64_t extent() {
    peek();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) fail();
    if (value < 0)
      throw InvalidRequest(fmt::format("the shape has the extent {}; extents are not negative", value));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::string_view rest_;
};

// The bytes of an array. An extent of zero does not excuse the others: their product must fit as well, so
// that no later product of extents can overflow, in whatever order.
std::size_t byte_count(const std::vector<std::int64_t>& shape, ElementType type) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(type));
  bool is_empty = false;
  for (const std::int64_t extent : shape) {
    is_empty = is_empty || extent == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes))
      throw InvalidRequest(fmt::format("the shape ({}) is larger than any memory", fmt::join(shape, ", ")));
  }
  return is_empty ? 0 : static_cast<std::size_t>(bytes);
}

// `bytes` has its first index varying fastest; the result its last.
std::vector<std::byte> to_row_major(std::span<const std::byte> bytes, const std::vector<std::int64_t>& shape,
                                    std::size_t element_bytes) {
  std::vector<std::size_t> strides(shape.size());
  std::size_t stride = element_bytes;
  for (std::size_t d = shape.size(); d-- > 0; stride *= static_cast<std::size_t>(shape[d]))
    strides[d] = stride;

  std::vector<std::byte> result(bytes.size());
  std::vector<std::int64_t> index(shape.size());
  std::size_t to = 0;
  for (std::size_t from = 0; from < bytes.size(); from += element_bytes) {
    std::memcpy(result.data() + to, bytes.data() + from, element_bytes);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      to += strides[d];
      if (++index[d] < shape[d]) break;
      to -= strides[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return result;
}

// Sequential reads of one regular file, whose size bounds what a header may claim.
class File {
 public:
  explicit File(const std::string& path)
      // O_NONBLOCK: opening a FIFO must not wait for a writer.
      : file_(fs_, fs_.open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK)) {
    if (!file_.is_open())
      throw InvalidRequest(fmt::format("it can't be opened: {}", message_of_errno(file_.error())));
    struct ::stat stat {};
    if (const int result = fs_.stat(file_.get(), stat); result < 0)
      throw InvalidRequest(message_of_errno(-result));
    if (!S_ISREG(stat.st_mode)) throw InvalidRequest("it is no regular file");
    left_ = static_cast<std::uint64_t>(stat.st_size);
  }

  std::uint64_t left() const { return left_; }

  std::vector<std::byte> read(std::size_t bytes, std::string_view what) {
    if (bytes > left_)
      throw InvalidRequest(fmt::format("{} has {} of {} bytes; the file is truncated", what, left_, bytes));
    std::vector<std::byte> result(bytes);
    const ssize_t got = fs_.read_full(file_.get(), result);
    if (got < 0)
      throw InvalidRequest(fmt::format("it can't be read: {}", message_of_errno(static_cast<int>(-got))));
    if (static_cast<std::size_t>(got) != bytes) throw InvalidRequest("it became shorter while it was read");
    left_ -= bytes;
    return result;
  }

 private:
  FileSystem& fs_ = real_file_system();
  Descriptor file_;
  std::uint64_t left_ = 0;
};

Header read_header(File& file) {
  const std::vector<std::byte> start = file.read(k_magic.size() + 2, "the magic");
  if (std::memcmp(start.data(), k_magic.data(), k_magic.size()) != 0)
    throw InvalidRequest("it is no .npy file; write it with numpy.save");
  const auto major = std::to_integer<unsigned>(start[6]), minor = std::to_integer<unsigned>(start[7]);
  if (major < 1 || major > 3 || minor != 0)
    throw InvalidRequest(fmt::format("its format {}.{} is unknown; give 1.0, 2.0 or 3.0", major, minor));

  std::size_t length = 0;
  const std::vector<std::byte> field = file.read(major == 1 ? 2 : 4, "the header length");
  std::memcpy(&length, field.data(), field.size());
  if (length > k_max_dictionary_bytes)
    throw InvalidRequest(
        fmt::format("its header has {} bytes; at most {} are accepted", length, k_max_dictionary_bytes));
  const std::vector<std::byte> text = file.read(length, "the header");
  return DictionaryParser({reinterpret_cast<const char*>(text.data()), text.size()}).parse();
}

// Its messages, and those of all that it calls, lack the path; read_npy puts it before them.
Array read_array(const std::string& path) {
  File file(path);
  Header header = read_header(file);
  Array array{.type = element_type_of(header.descr), .shape = std::move(header.shape)};
  array.bytes = file.read(byte_count(array.shape, array.type), "the array");
  if (file.left() != 0)
    throw InvalidRequest(fmt::format("it has {} bytes after the array; save one array a file", file.left()));
  if (header.descr == "|b1")
    for (std::byte& value : array.bytes) value = std::byte{value != std::byte{0}};
  if (header.fortran_order) array.bytes = to_row_major(array.bytes, array.shape, size_of(array.type));
  return array;
}

std::string header_for(const Array& array) {
  const auto* dtype = std::ranges::find(k_dtypes, array.type, &Dtype::type);
  const bool is_vector = array.shape.size() == 1;
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   dtype->descr, fmt::join(array.shape, ", "), is_vector ? "," : "");
  // NumPy leaves room for the first extent to grow to 21 digits in place.
  if (!array.shape.empty()) header.append(21 - fmt::formatted_size("{}", array.shape[0]), ' ');
  const std::size_t before = k_magic.size() + 4;
  const std::size_t unaligned = before + header.size() + 1;
  header.append(k_alignment - unaligned % k_alignment, ' ');  // a whole 64 where none is needed, as NumPy
  header += '\n';
  if (header.size() > k_max_dictionary_bytes)
    throw InvalidRequest(
        fmt::format("an array of {} dimensions does not fit in a .npy header", array.shape.size()));
  return fmt::format("{}\x01{}{}{}{}", k_magic, '\0', static_cast<char>(header.size() & 0xff),
                     static_cast<char>(header.size() >> 8), header);
}

}  // namespace

Array read_npy(const std::string& path) {
  try {
    return read_array(path);
  } catch (const InvalidRequest& reason) {
    throw InvalidRequest(fmt::format("'{}' can't be read as an array: {}", path, reason.what()));
  }
}

void write_npy(const std::string& path, const Array& array) {
  if (array.bytes.size() != static_cast<std::size_t>(array.count()) * size_of(array.type))
    throw InvalidRequest(fmt::format("'{}' can't be written: {} bytes are not a {}", path, array.bytes.size(),
                                     array.describe()));
  const std::string header = header_for(array);
  if (const int error =
          replace_whole(real_file_system(), path, {std::as_bytes(std::span(header)), array.bytes});
      error != 0)
    throw InvalidRequest(
        fmt::format("'{}' can't be written: {}; give another path", path, message_of_errno(error)));
}

}  // namespace jitsmith
