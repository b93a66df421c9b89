// Eight products of FP4 (E2M1) that share two powers of two (UE8M0), rounded once to f32. Products are looked up by the
// factors' exponents and digits as numbers of sixteenths, which a tree adds.
module scaled (
  input  [31:0] a, b,
  input  [7:0] scale_a, scale_b,
  output [31:0] d
);
  function [9:0] sixteenths(input [2:0] x, y);  // the product of two magnitudes
    reg [3:0] digits;
    reg [2:0] places;
    begin
      case ({x[0] & |x[2:1], y[0] & |y[2:1]})  // 1 or 1.5 each
        2'b00: digits = 4;
        2'b11: digits = 9;
        default: digits = 6;
      endcase
      places = (|x[2:1] ? x[2:1] - 1 : 0) + (|y[2:1] ? y[2:1] - 1 : 0);
      sixteenths = {4'b0, digits, 2'b0} << places;
      if (x[2:1] == 0) sixteenths = sixteenths >> 1;  // 0.5 or 0
      if (y[2:1] == 0) sixteenths = sixteenths >> 1;
      if (x == 0 || y == 0) sixteenths = 0;
    end
  endfunction

  wire [13:0] term [0:7];
  genvar i;
  generate
    for (i = 0; i < 8; i = i + 1) begin : signed_term
      wire minus = a[4*i+3] ^ b[4*i+3];
      assign term[i] = ({4'b0, sixteenths(a[4*i+2:4*i], b[4*i+2:4*i])} ^ {14{minus}}) + minus;
    end
  endgenerate
  wire [13:0] total = ((term[0] + term[1]) + (term[2] + term[3])) + ((term[4] + term[5]) + (term[6] + term[7]));
  wire negative = total[13];
  wire [12:0] size = negative ? -total[12:0] : total[12:0];

  // the highest one, and its exponent field in f32
  integer k;
  reg [3:0] highest;
  always @* begin
    highest = 0;
    for (k = 0; k < 13; k = k + 1) if (size[k]) highest = k;
  end
  wire [35:0] left = {size, 23'b0} << (12 - highest);
  wire signed [10:0] field = {3'b0, scale_a} + {3'b0, scale_b} + {7'b0, highest} - 11'd131;
  wire tiny = field < 1;
  wire [10:0] lost = tiny ? 1 - field : 0;
  wire [35:0] right = lost > 35 ? 0 : left >> lost;
  wire sticky = lost > 35 ? |left : (right << lost) != left;

  // to nearest, ties to even: below 24 bits are a half and the rest
  wire [23:0] kept = right[35:12];
  wire up = right[11] & (kept[0] | |right[10:0] | sticky);
  wire [33:0] rounded = {tiny ? 11'b0 : field, kept[22:0]} + up;
  wire infinite = !tiny & rounded[33:23] >= 255;
  wire nan = &scale_a | &scale_b;
  assign d = nan ? 32'h7fc00000
           : size == 0 ? 32'b0
           : infinite ? {negative, 31'h7f800000}
           : {negative, rounded[30:0]};
endmodule
