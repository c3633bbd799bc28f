using A;
using B;
